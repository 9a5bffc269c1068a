"""Assembly step, vocabulary: guesses by its first words whether a line is Lean or English."""

from __future__ import annotations

import re

_TACTIC_WORDS = """
    abel ac_rfl admit aesop all_goals any_goals apply apply_assumption apply_fun assumption bound
    bv_decide by_cases by_contra by_contra! calc case cases cases' change choose classical clear congr
    constructor continuity contradiction contrapose contrapose! conv conv_lhs conv_rhs convert convert_to
    decide delta done dsimp erw exact exact? exact_mod_cast exacts exfalso exists existsi ext extract_goal
    fail_if_success field field_simp filter_upwards fin_cases first focus fun_prop funext gcongr
    generalize grind group have haveI induction induction' infer_instance inhabit injection interval_cases
    intro intros itauto iterate left let letI lift linarith linear_combination measurability native_decide
    next nlinarith nofun nomatch noncomm_ring norm_cast norm_fin norm_num norm_num1 nth_rewrite nth_rw
    obtain omega on_goal peel pick_goal plausible polyrith positivity push_cast push_neg qify rcases
    refine refine' rename rename_i repeat repeat' replace revert rfl rify right ring ring1 ring_nf rintro
    rotate_left rw rwa set show show_term simp simp! simp? simp_all simp_arith simp_rw simpa skip
    slim_check solve_by_elim sorry specialize split split_ifs stop subst subst_vars suffices swap symm
    symm_at tauto trans trivial unfold unfold_let use wlog zify
"""
_TACTICS = frozenset(_TACTIC_WORDS.split())

_COMMAND_WORDS = """
    import open set_option universe variable namespace section noncomputable theorem lemma example def abbrev
    instance private protected local attribute structure inductive class by fun match
"""
_COMMANDS = frozenset(_COMMAND_WORDS.split())

COMMAND_LINE = re.compile(
    r"^[ \t]*(?:import|open|set_option|universe|variable|namespace|section|noncomputable|theorem|lemma"
    r"|example|def|abbrev|instance|structure|inductive|private|@\[|/-|--)(?!\w)",
    re.MULTILINE,
)
"""A line that begins with a word of a Lean command, or with a comment."""

_FIRST = re.compile(r"\s*+(?:([A-Za-z_][\w.]*['!?]?)|(--|/-|@\[|<;>|[·⟨{(|]))")
_ENGLISH = re.compile(
    r"\s+(?:the|a|an|is|are|was|we|you|it|that|this|these|to|of|and|for|our|all|each)\b|[,:]\s|[.]"
)

_SENTENCE = re.compile(
    r"[^\n]*\b[A-Za-z]+,? (?:the|a|an|is|are|was|we|you|this|to|of|that|can|and|for|all)[ \n]"
)


def looks_like_lean(text: str, start: int, end: int) -> bool:
    """Return whether a text begins like Lean rather than like English."""
    first = _FIRST.match(text, start, end)
    if first is None or first[2] is not None:
        return first is not None
    known = first[1] in _TACTICS or first[1] in _COMMANDS
    return known and _ENGLISH.match(text, first.end(), end) is None


def looks_like_english(text: str, start: int, end: int) -> bool:
    """Return whether the first line of a text looks like an English sentence and not like Lean."""
    return not looks_like_lean(text, start, end) and _SENTENCE.match(text, start, end) is not None
