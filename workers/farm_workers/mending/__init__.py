"""Room of `farm mend`: other texts of a Lean file, each of them judged."""
