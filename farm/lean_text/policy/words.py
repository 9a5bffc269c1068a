"""The words that the rules know, each with the rule that it belongs to."""

from __future__ import annotations

import re


def _words(rule: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), rule)


_DECLARED_WORDS = """
    def theorem lemma abbrev instance structure class inductive opaque axiom example section import
    noncomputable partial unsafe protected private public local scoped end initialize elab macro syntax
"""


_COMMAND_WORDS = """
    def theorem lemma abbrev instance structure class inductive coinductive alias example irreducible_def
    notation notation3 infix infixl infixr prefix postfix attribute variable include omit universe mutual
    namespace section end open export seal unseal set_option in
"""
#: Words that end the list of namespaces behind ``open``.
COMMANDS = frozenset(_COMMAND_WORDS.split())

#: Words that are keywords wherever they stand as a whole name.
KEYWORDS = (
    _words("axiom", "axiom")
    | _words("opaque", "opaque")
    | _words("run", "run_cmd run_tac run_elab run_meta run_conv by_elab")
    | _words("initialize", "initialize builtin_initialize")
    | _words(
        "metaprogram",
        "elab elab_rules macro macro_rules syntax declare_syntax_cat binder_predicate unif_hint"
        " simproc dsimproc simproc_decl dsimproc_decl builtin_simproc builtin_dsimproc",
    )
    | _words("imports", "import prelude")
    | _words("native", "native_decide nativeDecide bv_decide bv_decide? bv_check")
)
#: Commands that may open a namespace of Lean's own.
OPENING = frozenset({"open", "namespace", "export"})
#: Words that are keywords in front of a declaration and ordinary names elsewhere.
MODIFIERS = {"meta": "metaprogram"}
DECLARED = frozenset(_DECLARED_WORDS.split())
#: Commands that ``register_...`` and ``declare_...`` are, bring code that an import runs.
INITIALIZERS = re.compile(r"(?:register|declare|builtin)_\w+")

#: Commands that begin with ``#``; a set's size is written so as well.
HASHED = (
    _words("run", "eval eval! guard guard_expr html widget")
    | _words("stop", "exit")
    | _words("messages", "guard_msgs guard_panic check_failure")
)

#: Attributes, by the first name in them.
ATTRIBUTES = (
    _words("replaced_code", "implemented_by extern csimp export")
    | _words("initialize", "init builtin_init run_parser_attribute_hooks")
    | _words(
        "metaprogram",
        "macro term_elab command_elab tactic elab_rules simproc simprocAttr builtin_simproc unification_hint"
        " app_unexpander delab app_delab unexpand parenthesizer formatter combinator_parenthesizer"
        " combinator_formatter term_parser tactic_parser command_parser attr_parser prio_parser"
        " syntax_parser code_action_provider command_code_action tactic_code_action widget_module"
        " server_rpc_method positivity norm_num quot_precheck inductive_elab",
    )
)

#: Other attributes that hand Lean code to run.
CODE_ATTRIBUTE = re.compile(
    r"builtin_\w+|\w+_(?:parser|elab|delab|handler|propagator)|\w*simproc\w*|\w+_proc|sevalproc|cpass"
    r"|doc_(?:role|code_block|directive|command)|try_suggestion"
)

#: Namespaces that a submission never needs: their names run code, or change Lean's behaviour. Code need not
#: be a command's: a tactic's configuration is evaluated, and aesop runs rules that it is given.
LEAN_S_OWN = ("Lean", "IO")

#: Names that end so stand for axioms with which anything can be proved.
TRUSTED = ("sorryAx", "ofReduceBool", "ofReduceNat", "reduceBool", "reduceNat", "trustCompiler")

#: Options of these families are not the submission's to set.
OPTION_FAMILIES = frozenset(
    {"debug", "warn", "compiler", "interpreter", "trace", "internal", "server", "bootstrap", "doc"}
)
SINGLE_OPTIONS = frozenset({"stderrAsMessages", "warningAsError"})
SKIP_KERNEL = "skipKernelTC"

#: A text is looked at closely only when one of these words is anywhere in it.
WORD = re.compile(r"\w+[!?]*", re.ASCII)  # in ``x⁻¹axiom`` the last word is one to Lean
_SUSPECTS = (
    frozenset(KEYWORDS)
    | frozenset(MODIFIERS)
    | OPENING
    | frozenset({"attribute", "set_option", "unsafe", "native", "eval", "config"})
)
#: Speaking of rules for aesop, in which ``unsafe`` is a word like any other.
AESOP = frozenset({"aesop", "add", "add_aesop_rules"})
#: Names that say something by themselves, or by where they stand.
TELLING = _SUSPECTS | frozenset(HASHED) | AESOP
_SUSPECT_PARTS = re.compile(
    r"(?:register|declare|builtin)_\w|sorryAx|ofReduce|trustCompiler|reduceBool|reduceNat|skipKernel|\#|@\[|[«»]|Lean»?\.|\bIO\b",
    re.IGNORECASE,
)


#: No word that a rule knows is longer; one may begin in the dataset's part and end in the submission's.
LONGEST = 40


_SUSPECT_WORDS = _SUSPECTS | OPTION_FAMILIES
#: Imports of modules that no rule names, one a line.
_PLAIN_IMPORTS = re.compile(r"(?:prelude\n+)?(?:import [A-Z]\w*(?:\.[A-Z]\w*)*\n+)*", re.ASCII)


def plain_imports_end(text: str) -> int:
    """Return the offset behind the imports that a text plainly begins with, which no rule hits."""
    found = _PLAIN_IMPORTS.match(text)
    return found.end() if found and not _SUSPECT_PARTS.search(text, 0, found.end()) else 0


def is_suspect(text: str) -> bool:
    """Whether a text holds anything that a rule could hit, wherever it stands."""
    return not _SUSPECT_WORDS.isdisjoint(WORD.findall(text)) or _SUSPECT_PARTS.search(text) is not None
