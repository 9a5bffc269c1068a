"""Room of `farm tidy`, `farm repair` and `farm minimize`: other texts of a Lean file, each of them judged."""
