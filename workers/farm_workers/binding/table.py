"""Binding step, the table: each function and field of Lean that the farm uses, by Lean's own name. Pure.

A function's parameters are those that the farm gives, in the order in which it gives them. A toolchain may
have them in another order, and others besides; `farm_workers.binding.bind` says which are acceptable. A
parameter without a name is written as its type, ``[ConstantInfo]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from farm_workers.binding.signatures import Shape


class Gives(StrEnum):
    """The kind of a function's result: a value, that of an action that can fail, or of one that cannot.

    The errors of an `ACTION` are those of IO. An `OUTCOME` is the result of an action whose errors are the
    elaborator's: it is returned as it is.
    """

    VALUE = "value"
    ACTION = "action"
    PLAIN_ACTION = "plain action"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Taken:
    """A parameter that the farm gives. An optional one is left out if the toolchain's function lacks it."""

    name: str
    shape: Shape = Shape.OBJECT
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Function:
    """A function of Lean's.

    `beyond` counts the parameters of its monad, besides the word for the world: the farm gives them behind
    the others. `proofs` are parameters that compiled code ignores. Where Lean exports it under a `symbol` of
    its own, the library has no other.
    """

    name: str
    takes: tuple[Taken, ...]
    gives: Gives = Gives.VALUE
    beyond: int = 0
    proofs: tuple[str, ...] = ()
    symbol: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LibraryConstant:
    """A constant of Lean's whose value the library holds."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class StructureField:
    """A field of a structure of Lean's."""

    structure: str
    name: str
    shape: Shape = Shape.OBJECT


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A structure that the farm makes: it gives these fields, and `optional` ones where Lean has them."""

    name: str
    parts: tuple[Taken, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Constructor:
    """A constructor of a type of Lean's."""

    type: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeFunction:
    """A function of Lean's runtime for C (``lean.h``), or one that Lean exports for its own C++."""

    symbol: str
    words: int


def _byte(name: str, *, optional: bool = False) -> Taken:
    return Taken(name, Shape.BYTE, optional)


def _optional(name: str) -> Taken:
    return Taken(name, optional=True)


def _taken(*names: str) -> tuple[Taken, ...]:
    return tuple(map(Taken, names))


# The library

ALLOCATE = RuntimeFunction("lean_alloc_object", 1)
APPLY = RuntimeFunction("lean_apply_1", 2)
ARRAY = RuntimeFunction("lean_array_mk", 1)
ERROR_TEXT = RuntimeFunction("lean_io_error_to_string", 1)
INITIALIZE = RuntimeFunction("lean_initialize", 0)
INITIALIZERS_RUN = RuntimeFunction("lean_enable_initializer_execution", 0)
INITIALIZED = RuntimeFunction("lean_io_mark_end_initialization", 0)
NAME_NUMBER = RuntimeFunction("lean_name_mk_numeral", 2)
NEW_REFERENCE = RuntimeFunction("lean_st_mk_ref", 2)  # the second word is the world, in some releases
NAME_STRING = RuntimeFunction("lean_name_mk_string", 2)
GET_HEARTBEATS = RuntimeFunction("lean_io_get_num_heartbeats", 1)
SET_HEARTBEATS = RuntimeFunction("lean_io_set_heartbeats", 2)
START_TASKS = RuntimeFunction("lean_init_task_manager_using", 1)
STRING = RuntimeFunction("lean_mk_string", 1)

MAJOR, MINOR = LibraryConstant("Lean.version.major"), LibraryConstant("Lean.version.minor")
NO_OPTIONS = LibraryConstant("Lean.Options.empty")
SEARCH_PATH = Function(name="Lean.initSearchPath", takes=_taken("leanSysroot", "sp"), gives=Gives.ACTION)
SET_OPTION = Function(
    name="_private.Lean.Shell.0.Lean.setConfigOption", takes=_taken("opts", "arg"), gives=Gives.ACTION
)

KEEP_OPTION = Function(name="Lean.KVMap.setString", takes=_taken("m", "k", "v"))
READ_OPTIONS = Function(name="Lean.Language.Lean.reparseOptions", takes=_taken("opts"), gives=Gives.ACTION)

# Environments

FIND = Function(
    name="Lean.Kernel.Environment.find?", takes=_taken("env", "n"), symbol="lean_environment_find"
)
OF_KERNEL = Function(
    name="Lean.Environment.toKernelEnv", takes=_taken("env"), symbol="lean_elab_environment_to_kernel_env"
)
MODULE_INDEX = Function(name="Lean.Environment.getModuleIdx?", takes=_taken("env", "moduleName"))
MODULE_OF = Function(name="Lean.Environment.getModuleIdxFor?", takes=_taken("env", "declName"))
EXTENSIONS = LibraryConstant("Lean.persistentEnvExtensionsRef")
EXTENSION_NAME = StructureField("Lean.PersistentEnvExtension", "name")
IMPORTED_MODULE = StructureField("Lean.Import", "module")

# Modules

WRITE_MODULE = Function(name="Lean.writeModule", takes=_taken("env", "fname"), gives=Gives.ACTION)
MODULE_DATA = Function(
    name="Lean.mkModuleData", takes=(Taken("env"), _byte("level", optional=True)), gives=Gives.ACTION
)
SAVE_MODULE = Function(name="Lean.saveModuleData", takes=_taken("fname", "mod", "data"), gives=Gives.ACTION)
READ_MODULE = Function(name="Lean.readModuleData", takes=_taken("fname"), gives=Gives.ACTION)
WHOLE_MODULE = Constructor("Lean.OLeanLevel", "private")
_MODULE = "Lean.ModuleData"
IMPORTS, NAMES, CONSTANTS = (
    StructureField(_MODULE, "imports"),
    StructureField(_MODULE, "constNames"),
    StructureField(_MODULE, "constants"),
)
EXTRA_NAMES, ENTRIES = StructureField(_MODULE, "extraConstNames"), StructureField(_MODULE, "entries")
IS_MODULE = StructureField(_MODULE, "isModule", Shape.BYTE)
MODULE = Structure(
    _MODULE,
    (
        *_taken("imports", "constNames", "constants", "extraConstNames", "entries"),
        _byte("isModule", optional=True),
    ),
)

# Texts, and their elaboration as snapshots

_LANGUAGE = "Lean.Language.Lean"
INPUT = Function(
    name="Lean.Parser.mkInputContext",
    takes=(*_taken("input", "fileName"), _optional("endPos")),
    proofs=("endPos_valid",),
)
PROCESS = Function(
    name=f"{_LANGUAGE}.process", takes=_taken("setupImports", "old?"), gives=Gives.PLAIN_ACTION, beyond=1
)
FINAL_STATE = Function(name=f"{_LANGUAGE}.waitForFinalCmdState?", takes=_taken("snap"))
AS_TREE = LibraryConstant(f"{_LANGUAGE}.instToSnapshotTreeHeaderParsedSnapshot")
TO_TREE = Function(name="Lean.Language.toSnapshotTree", takes=_taken("[ToSnapshotTree]", "a"))
TREE_METHOD = StructureField("Lean.Language.ToSnapshotTree", "toSnapshotTree")
REPORT = Function(
    name="Lean.Language.SnapshotTree.runAndReport",
    takes=(*_taken("s", "opts"), _byte("json"), _optional("severityOverrides")),
    gives=Gives.ACTION,
)
ALL_SNAPSHOTS = Function(name="Lean.Language.SnapshotTree.getAll", takes=_taken("s"))
HEADER_IMPORTS = Function(
    name="Lean.Elab.HeaderSyntax.imports", takes=(Taken("stx"), _byte("includeInit", optional=True))
)
HEADER_IS_MODULE = Function(name="Lean.Elab.HeaderSyntax.isModule", takes=_taken("header"))
SETUP = Structure(
    f"{_LANGUAGE}.SetupImportsResult",
    (
        *_taken("mainModuleName", "imports", "opts"),
        *map(_optional, ("package?", "importArts", "plugins")),
        Taken("trustLevel", Shape.UINT32),
        _byte("isModule", optional=True),
    ),
)
PARSED = StructureField(f"{_LANGUAGE}.HeaderParsedSnapshot", "result?")
PROCESSED_TASK = StructureField(f"{_LANGUAGE}.HeaderParsedState", "processedSnap")
PROCESSED = StructureField(f"{_LANGUAGE}.HeaderProcessedSnapshot", "result?")
STATE = StructureField(f"{_LANGUAGE}.HeaderProcessedState", "cmdState")
FIRST_COMMAND = StructureField(f"{_LANGUAGE}.HeaderProcessedState", "firstCmdSnap")
COMMAND_SYNTAX = StructureField(f"{_LANGUAGE}.CommandParsedSnapshot", "stx")
PARSER_STATE = StructureField(f"{_LANGUAGE}.CommandParsedSnapshot", "parserState")
NEXT_COMMAND = StructureField(f"{_LANGUAGE}.CommandParsedSnapshot", "nextCmdSnap?")
PARSER_POSITION = StructureField("Lean.Parser.ModuleParserState", "pos")
TASK = StructureField("Lean.Language.SnapshotTask", "task")
DIAGNOSTICS = StructureField("Lean.Language.Snapshot", "diagnostics")
SNAPSHOT_TREE = StructureField("Lean.Language.Snapshot", "infoTree?")
SNAPSHOT_MESSAGES = StructureField("Lean.Language.Snapshot.Diagnostics", "msgLog")

# Commands

ENVIRONMENT = StructureField("Lean.Elab.Command.State", "env")
SCOPES = StructureField("Lean.Elab.Command.State", "scopes")
MESSAGES = StructureField("Lean.Elab.Command.State", "messages")
INFO_STATE = StructureField("Lean.Elab.Command.State", "infoState")
SCOPE_OPTIONS = StructureField("Lean.Elab.Command.Scope", "opts")
SCOPE_NAMESPACE = StructureField("Lean.Elab.Command.Scope", "currNamespace")
SCOPE_OPEN = StructureField("Lean.Elab.Command.Scope", "openDecls")
SYNTAX_KIND = Function(name="Lean.Syntax.getKind", takes=_taken("stx"))

# Texts that are parsed and not elaborated

PARSER_CONTEXT = Structure(
    "Lean.Parser.ParserModuleContext", _taken("env", "options", "currNamespace", "openDecls")
)
PARSER_AT = Structure("Lean.Parser.ModuleParserState", (Taken("pos"), _byte("recovering")))
PARSE_COMMAND = Function(
    name="Lean.Parser.parseCommand", takes=_taken("inputCtx", "pmctx", "mps", "messages")
)

# Texts, and their elaboration command by command

PARSE_HEADER = Function(name="Lean.Parser.parseHeader", takes=_taken("inputCtx"), gives=Gives.ACTION)
PROCESS_HEADER = Function(
    name="Lean.Elab.processHeader",
    takes=(
        *_taken("header", "opts", "messages", "inputCtx"),
        Taken("trustLevel", Shape.UINT32),
        _optional("plugins"),
        _byte("leakEnv", optional=True),
        _optional("mainModule"),
    ),
    gives=Gives.ACTION,
)
COMMAND_STATE = Function(name="Lean.Elab.Command.mkState", takes=_taken("env", "messages", "opts"))
PROCESS_COMMANDS = Function(
    name="Lean.Elab.IO.processCommands",
    takes=_taken("inputCtx", "parserState", "commandState"),
    gives=Gives.ACTION,
)
DONE_STATE = StructureField("Lean.Elab.Frontend.State", "commandState")
DONE_COMMANDS = StructureField("Lean.Elab.Frontend.State", "commands")
TREES_ENABLED = StructureField("Lean.Elab.InfoState", "enabled", Shape.BYTE)
TREES = StructureField("Lean.Elab.InfoState", "trees")
TREES_ARRAY = Function(name="Lean.PersistentArray.toArray", takes=_taken("t"))
NO_MESSAGES = LibraryConstant("Lean.MessageLog.empty")
MESSAGE_JSON = Function(name="Lean.Message.toJson", takes=_taken("msg"), gives=Gives.PLAIN_ACTION)
JSON_TEXT = Function(name="Lean.Json.compress", takes=_taken("j"))

# Messages

MESSAGE_ARRAY = Function(name="Lean.MessageLog.toArray", takes=_taken("log"))
MESSAGE_KIND = Function(name="Lean.MessageData.kind", takes=_taken("[MessageData]"))
_MESSAGE = "Lean.BaseMessage"
MESSAGE_POSITION, MESSAGE_WORDS = StructureField(_MESSAGE, "pos"), StructureField(_MESSAGE, "data")
SEVERITY = StructureField(_MESSAGE, "severity", Shape.BYTE)
WARNING, ERROR = (Constructor("Lean.MessageSeverity", name) for name in ("warning", "error"))
LINE, COLUMN = StructureField("Lean.Position", "line"), StructureField("Lean.Position", "column")

# Trees of the elaboration

FOLD_TREE = Function(name="Lean.Elab.InfoTree.foldInfo", takes=_taken("f", "init", "[InfoTree]"))
IS_TACTIC, IS_TERM = (Constructor("Lean.Elab.Info", name) for name in ("ofTacticInfo", "ofTermInfo"))
_TACTIC, _TERM = "Lean.Elab.TacticInfo", "Lean.Elab.TermInfo"
ELABORATOR, INFO_SYNTAX = (
    StructureField("Lean.Elab.ElabInfo", "elaborator"),
    StructureField("Lean.Elab.ElabInfo", "stx"),
)
TACTIC_INFO = StructureField(_TACTIC, "toElabInfo")
BEFORE = StructureField(_TACTIC, "mctxBefore"), StructureField(_TACTIC, "goalsBefore")
AFTER = StructureField(_TACTIC, "mctxAfter"), StructureField(_TACTIC, "goalsAfter")
TERM_INFO, TERM_CONTEXT = StructureField(_TERM, "toElabInfo"), StructureField(_TERM, "lctx")
EXPECTED_TYPE, TERM = StructureField(_TERM, "expectedType?"), StructureField(_TERM, "expr")
IS_BINDER = StructureField(_TERM, "isBinder", Shape.BYTE)
IS_COMMAND = Constructor("Lean.Elab.Info", "ofCommandInfo")
COMMAND_CONTEXT = StructureField("Lean.Elab.ContextInfo", "toCommandContextInfo")
CONTEXT_ENVIRONMENT = StructureField("Lean.Elab.CommandContextInfo", "env")
CONTEXT_HOLES = StructureField("Lean.Elab.CommandContextInfo", "mctx")
START = Function(name="Lean.Syntax.getPos?", takes=(Taken("stx"), _byte("canonicalOnly")))
END = Function(name="Lean.Syntax.getTailPos?", takes=(Taken("stx"), _byte("canonicalOnly")))
ADD_HOLE = Function(
    name="Lean.MetavarContext.addExprMVarDecl",
    takes=(
        *_taken("mctx", "mvarId", "userName", "lctx", "localInstances", "type"),
        _byte("kind"),
        Taken("numScopeArgs"),
    ),
)
PRINT_GOALS = Function(name="Lean.Elab.ContextInfo.ppGoals", takes=_taken("ctx", "goals"), gives=Gives.ACTION)
PRETTY = Function(name="Std.Format.pretty", takes=_taken("f", "width", "indent", "column"))
USED_CONSTANTS = Function(name="Lean.Expr.getUsedConstants", takes=_taken("e"))
REPLACED = Function(name="Lean.Expr.replaceImpl", takes=_taken("f?", "e"))

# Compiled code

NO_VARIABLES = LibraryConstant("Lean.LocalContext.empty")
RUN_META = Function(
    name="Lean.Elab.ContextInfo.runMetaM", takes=_taken("info", "lctx", "x"), gives=Gives.ACTION
)
EVALUATE = Function(
    name="Lean.Meta.nativeEqTrue",
    takes=_taken("tacticName", "e", "axiomDeclRange?"),
    gives=Gives.ACTION,
    beyond=4,
)
IS_TRUE = Constructor("Lean.Meta.NativeEqTrueResult", "success")

# Tactics, one by one

FRONTEND_STATE = Structure(
    "Lean.Elab.Frontend.State", _taken("commandState", "parserState", "cmdPos", "commands")
)
IN_FRONTEND = Function(
    name="Lean.Elab.Frontend.runCommandElabM", takes=_taken("x"), gives=Gives.OUTCOME, beyond=2
)
IN_COMMAND = Function(
    name="Lean.Elab.Command.liftTermElabM", takes=_taken("x"), gives=Gives.OUTCOME, beyond=2
)
PARSE = Function(name="Lean.Parser.runParserCategory", takes=_taken("env", "catName", "input", "fileName"))
RUN_TACTIC = Function(
    name="Lean.Elab.Tactic.evalTactic", takes=_taken("[Syntax]"), gives=Gives.OUTCOME, beyond=8
)
OPEN_GOALS = Function(name="Lean.Elab.Tactic.getUnsolvedGoals", takes=(), gives=Gives.OUTCOME, beyond=8)
PRINT_GOAL = Function(name="Lean.Meta.ppGoal", takes=_taken("mvarId"), gives=Gives.OUTCOME, beyond=4)
THROWN_WORDS = Function(name="Lean.Exception.toMessageData", takes=_taken("[Exception]"))
WORDS_TEXT = Function(name="Lean.MessageData.toString", takes=_taken("msgData"), gives=Gives.PLAIN_ACTION)
TACTIC_CONTEXT = Structure("Lean.Elab.Tactic.Context", (Taken("elaborator"), _byte("recover")))
NAME_GENERATOR = Structure("Lean.NameGenerator", _taken("namePrefix", "idx"))
_CORE = "Lean.Core.State"
CORE_ENVIRONMENT, CORE_NAMES = StructureField(_CORE, "env"), StructureField(_CORE, "ngen")
CORE_MESSAGES, CORE_TREES = StructureField(_CORE, "messages"), StructureField(_CORE, "infoState")
MOST_HEARTBEATS = Function(name="Lean.Core.getMaxHeartbeats", takes=_taken("opts"))
CONTEXT_OPTIONS = StructureField("Lean.Elab.CommandContextInfo", "options")
HOLES = StructureField("Lean.Meta.State", "mctx")
LEVEL_NAMES = StructureField("Lean.Elab.Term.State", "levelNames")
DECLARATION = StructureField("Lean.Elab.ContextInfo", "parentDecl?")

# The kernel

REPLAY = Function(
    name="Lean.Kernel.Environment.replay", takes=_taken("newConstants", "env"), gives=Gives.ACTION
)
#: The same of releases in which it takes the elaborator's view of an environment.
REPLAY_VIEW = Function(
    name="Lean.Environment.replay", takes=_taken("newConstants", "env"), gives=Gives.ACTION
)
VIEW_OF_KERNEL = Function(name="Lean.Environment.ofKernelEnv", takes=_taken("env"))
REPLAY_READY = RuntimeFunction("initialize_Lean_Replay", 1)
NAME_EQUAL, NAME_HASH = LibraryConstant("Lean.Name.instBEq"), LibraryConstant("Lean.instHashableName")
EMPTY_MAP = Function(name="Std.HashMap.emptyWithCapacity", takes=_taken("[BEq]", "[Hashable]", "capacity"))
INSERT = Function(name="Std.HashMap.insert", takes=_taken("[BEq]", "[Hashable]", "m", "a", "b"))
SAME_CONSTANT = Function(
    name="Lean.instBEqConstantInfo.beq", takes=_taken("[ConstantInfo]", "[ConstantInfo]")
)
SAME_TERM = RuntimeFunction("lean_expr_eqv", 2)
IS_UNSAFE = Function(name="Lean.ConstantInfo.isUnsafe", takes=_taken("[ConstantInfo]"))
IS_PARTIAL = Function(name="Lean.ConstantInfo.isPartial", takes=_taken("[ConstantInfo]"))
IMPORT = Function(
    name="Lean.importModules",
    takes=(
        *_taken("imports", "opts"),
        Taken("trustLevel", Shape.UINT32),
        _optional("plugins"),
        _byte("leakEnv", optional=True),
        _byte("loadExts", optional=True),
        _byte("level", optional=True),
        _optional("arts"),
    ),
    gives=Gives.ACTION,
)
NO_ARTIFACTS = Function(name="Lean.mkNameMap", takes=())

# Names, levels and terms: Lean's constructors, which compute a hash and flags

LEVEL_SUCC, LEVEL_PARAMETER, LEVEL_HOLE = (
    RuntimeFunction(f"lean_level_mk_{each}", 1) for each in ("succ", "param", "mvar")
)
LEVEL_MAX, LEVEL_IMAX = (RuntimeFunction(f"lean_level_mk_{each}", 2) for each in ("max", "imax"))
VARIABLE, FREE, HOLE, SORT, LITERAL = (
    RuntimeFunction(f"lean_expr_mk_{each}", 1) for each in ("bvar", "fvar", "mvar", "sort", "lit")
)
CONST, APP, MARKED = (RuntimeFunction(f"lean_expr_mk_{each}", 2) for each in ("const", "app", "mdata"))
LAMBDA, FORALL = (RuntimeFunction(f"lean_expr_mk_{each}", 4) for each in ("lambda", "forall"))
LET, PROJECTION = RuntimeFunction("lean_expr_mk_let", 5), RuntimeFunction("lean_expr_mk_proj", 3)


Entry = Function | LibraryConstant | StructureField | Structure | Constructor | RuntimeFunction


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Entries of which one is enough."""

    entries: tuple[Entry, ...]


class Ability(StrEnum):
    """A use of a toolchain, which the farm has if its entries bind."""

    START = "start"
    REPLAY = "replay"
    SEAL = "seal"
    WRITE = "write"
    COMMANDS = "commands"
    SNAPSHOTS = "snapshots"
    CONTEXTS = "contexts"
    GOALS = "goals"
    EXAMPLES = "examples"
    COMPILED = "compiled"
    PRINTING = "printing"
    SESSIONS = "sessions"
    READING = "reading"
    EXTRACTION = "extraction"


_KERNEL: tuple[Entry | OneOf, ...] = (
    *(OneOf((REPLAY, REPLAY_VIEW)), OneOf((REPLAY, VIEW_OF_KERNEL)), OneOf((SAME_CONSTANT, SAME_TERM))),
    *(REPLAY_READY, NAME_EQUAL, NAME_HASH, EMPTY_MAP, INSERT, IS_UNSAFE, IS_PARTIAL, FIND, OF_KERNEL),
)
_TERMS: tuple[Entry, ...] = (
    *(LEVEL_SUCC, LEVEL_PARAMETER, LEVEL_HOLE, LEVEL_MAX, LEVEL_IMAX, VARIABLE, FREE, HOLE, SORT, LITERAL),
    *(CONST, APP, MARKED, LAMBDA, FORALL, LET, PROJECTION),
)
_MODULES: tuple[Entry, ...] = (
    *(MODULE_DATA, SAVE_MODULE, WHOLE_MODULE, MODULE, IMPORTS, NAMES, CONSTANTS, EXTRA_NAMES, ENTRIES),
    IS_MODULE,
)

_OPTIONS = OneOf((SET_OPTION, KEEP_OPTION)), OneOf((SET_OPTION, READ_OPTIONS))

#: The entries that each ability rests on.
ABILITIES: dict[Ability, tuple[Entry | OneOf, ...]] = {
    Ability.START: (
        *(ALLOCATE, ARRAY, ERROR_TEXT, INITIALIZE, INITIALIZERS_RUN, INITIALIZED, STRING),
        *(NAME_NUMBER, NAME_STRING, START_TASKS, MAJOR, MINOR, NO_OPTIONS, SEARCH_PATH),
    ),
    Ability.REPLAY: (
        *_KERNEL,
        *_TERMS,
        *(READ_MODULE, IMPORT, NO_ARTIFACTS, WHOLE_MODULE),
        *(IMPORTS, NAMES, CONSTANTS, IS_MODULE, IMPORTED_MODULE),
    ),
    Ability.SEAL: (*_KERNEL, *_TERMS),
    Ability.WRITE: (WRITE_MODULE,),
    Ability.COMMANDS: (
        *(INPUT, PARSE_HEADER, PROCESS_HEADER, COMMAND_STATE, PROCESS_COMMANDS, DONE_STATE, DONE_COMMANDS),
        *(ENVIRONMENT, MESSAGES, INFO_STATE, TREES, TREES_ENABLED, TREES_ARRAY, NO_MESSAGES, MESSAGE_ARRAY),
        *(MESSAGE_JSON, JSON_TEXT, SEVERITY, ERROR, SYNTAX_KIND, MODULE_INDEX, OF_KERNEL),
        *(*_OPTIONS, HEADER_IMPORTS, IMPORTED_MODULE),
    ),
    Ability.SNAPSHOTS: (
        *(
            INPUT,
            PROCESS,
            FINAL_STATE,
            AS_TREE,
            OneOf((TO_TREE, TREE_METHOD)),
            APPLY,
            REPORT,
            ALL_SNAPSHOTS,
            SNAPSHOT_TREE,
        ),
        *(HEADER_IMPORTS, HEADER_IS_MODULE, SETUP, IMPORTED_MODULE),
        *(PARSED, PROCESSED_TASK, PROCESSED, STATE, FIRST_COMMAND, TASK, NEXT_COMMAND, COMMAND_SYNTAX),
        *(*_OPTIONS, ENVIRONMENT, SYNTAX_KIND, MODULE_INDEX, OF_KERNEL),
    ),
    Ability.CONTEXTS: (
        *(SCOPES, SCOPE_OPTIONS, PARSER_STATE, PARSER_POSITION, EXTENSIONS, EXTENSION_NAME, FIND),
        *_MODULES,
    ),
    Ability.GOALS: (
        *(FOLD_TREE, IS_TACTIC, IS_TERM, ELABORATOR, INFO_SYNTAX, TACTIC_INFO, *BEFORE, *AFTER),
        *(TERM_INFO, TERM_CONTEXT, EXPECTED_TYPE, COMMAND_CONTEXT, CONTEXT_HOLES, START, END, ADD_HOLE),
        *(PRINT_GOALS, PRETTY, SYNTAX_KIND, MESSAGE_ARRAY, MESSAGE_KIND, MESSAGE_POSITION, MESSAGE_WORDS),
        *(SEVERITY, WARNING, ERROR, LINE, COLUMN, DIAGNOSTICS, SNAPSHOT_MESSAGES),
    ),
    Ability.EXAMPLES: (
        *(FOLD_TREE, IS_TERM, ELABORATOR, INFO_SYNTAX, TERM_INFO, TERM, IS_BINDER, COMMAND_CONTEXT),
        *(CONTEXT_ENVIRONMENT, START, END, USED_CONSTANTS, REPLACED, FIND, OF_KERNEL, CONST, IS_COMMAND),
        *(LINE, COLUMN, *_MODULES),
    ),
    Ability.SESSIONS: (
        *(FRONTEND_STATE, IN_FRONTEND, IN_COMMAND, PARSE, RUN_TACTIC, OPEN_GOALS, PRINT_GOAL),
        *(THROWN_WORDS, WORDS_TEXT, TACTIC_CONTEXT, NAME_GENERATOR, NEW_REFERENCE),
        *(CORE_ENVIRONMENT, CORE_NAMES, CORE_MESSAGES, CORE_TREES, MOST_HEARTBEATS, CONTEXT_OPTIONS),
        *(HOLES, LEVEL_NAMES, DECLARATION, RUN_META, NO_VARIABLES, SET_HEARTBEATS, TREES_ENABLED, PRETTY),
        *(FOLD_TREE, IS_TACTIC, IS_TERM, ELABORATOR, INFO_SYNTAX, TACTIC_INFO, *BEFORE, TERM_INFO),
        *(TERM_CONTEXT, EXPECTED_TYPE, COMMAND_CONTEXT, CONTEXT_HOLES, START, ADD_HOLE, SYNTAX_KIND),
        *(MESSAGE_ARRAY, MESSAGE_WORDS, SEVERITY, ERROR, NO_MESSAGES, FIND, OF_KERNEL, INPUT),
    ),
    Ability.READING: (
        *(PARSER_CONTEXT, PARSER_AT, PARSER_POSITION, PARSE_COMMAND, PARSE, INPUT, PROCESS_COMMANDS),
        *(DONE_STATE, SCOPES, SCOPE_OPTIONS, SCOPE_NAMESPACE, SCOPE_OPEN, ENVIRONMENT, SYNTAX_KIND, START),
        *(END, FIND, OF_KERNEL, NO_MESSAGES, MESSAGE_ARRAY, FOLD_TREE, IS_TACTIC, TACTIC_INFO, INFO_SYNTAX),
    ),
    Ability.EXTRACTION: (
        *(PARSER_CONTEXT, PARSER_AT, PARSER_POSITION, PARSE_COMMAND, INPUT, PROCESS_COMMANDS, DONE_STATE),
        *(SCOPES, SCOPE_OPTIONS, SCOPE_NAMESPACE, SCOPE_OPEN, ENVIRONMENT, INFO_STATE, TREES, TREES_ARRAY),
        *(MESSAGES, MESSAGE_ARRAY, MESSAGE_WORDS, WORDS_TEXT, SEVERITY, ERROR, NO_MESSAGES, SYNTAX_KIND),
        *(DONE_COMMANDS, LINE, COLUMN, MESSAGE_POSITION, START, END, FIND, OF_KERNEL, USED_CONSTANTS),
        *(GET_HEARTBEATS, MODULE_DATA, NAMES, CONSTANTS, ENTRIES, FOLD_TREE, IS_TACTIC, TACTIC_INFO),
        *(INFO_SYNTAX, *BEFORE, *AFTER, COMMAND_CONTEXT, CONTEXT_HOLES, ADD_HOLE, NO_VARIABLES),
        *(PRINT_GOALS, PRETTY, SET_HEARTBEATS, MODULE_INDEX, MODULE_OF),
    ),
    Ability.COMPILED: (FOLD_TREE, EVALUATE, RUN_META, NO_VARIABLES, SET_HEARTBEATS, IS_TRUE, FIND),
    Ability.PRINTING: (
        *(VIEW_OF_KERNEL, COMMAND_CONTEXT, CONTEXT_ENVIRONMENT, CONTEXT_HOLES, ADD_HOLE, PRINT_GOALS, PRETTY),
        *(NO_VARIABLES, SET_HEARTBEATS),
    ),
}
