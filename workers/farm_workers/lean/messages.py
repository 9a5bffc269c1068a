"""Lean step: how a program is given to Lean, and what its answer says. Pure: nothing here runs anything."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from farm.characters import storable
from farm.judging.messages import HEARTBEAT_KIND, SORRY_KIND, is_heartbeat, most_telling, says_sorry
from farm.judging.report import Answer, Message
from farm.lean_text.positions import Positions
from farm_workers.environments.lean_environment import LeanEnvironment

#: The most messages that are kept; errors are kept before warnings, and those before information.
MOST_MESSAGES = 200
#: The most characters of one message, and of all that is not a message.
MOST_TEXT = 8192
#: A line that is no message is searched this often for one behind what somebody else printed there.
_MOST_STARTS = 16


def with_end_mark(program: str, mark: str) -> str:
    """Return a program followed by commands that print a mark; `completes` looks at the answer.

    Lean ends with status 0, and says nothing, when a program stops it early (``#exit``, or a call that ends
    the process): only a mark that the program could not know tells that Lean read it to its end. A program
    that ends in ``open A in`` takes the first command for its own, and what that declares ends with it: then
    the second command fails.
    """
    return f'{program}\nuniverse {_LEVEL}{mark}\n#check Sort {_LEVEL}{mark}\n#print "{mark}"\n'


_LEVEL = "farm_"


def completes(stdout: bytes, *, program: str, mark: str) -> bool:
    """Tell from Lean's answer to `with_end_mark` whether it read the program apart from the mark.

    If not, the mark was in the way of the program's last command, or was taken for a part of it.
    """
    said, _ = _separated(stdout)
    last = program.count("\n") + 1
    behind = (each for each in said if max(each.line, each.end_line or 0) > last)
    return _has_mark(said, mark) and all(each.severity != "error" for each in behind)


#: One check, one core, for the farm runs one check per core. Proofs are elaborated in order and not aside, so
#: that the one thread is free to report what is done while the next command hangs. ``weak``: versions of Lean
#: that know no such option pass over it.
_ONE_CORE = ("-j1", "-Dweak.Elab.async=false")


def cold_command(environment: LeanEnvironment) -> list[str]:
    """Return the command that checks the program on standard input in a process of its own.

    ``-M`` is not given: Lean compares it with
    resident memory, in which the mapped files of the library count, so it would blame small proofs for large
    imports; the box watches private memory instead. An environment's own options may set it.
    """
    return [*environment.lean, *_ONE_CORE, "--json", "--stdin"]


#: What a compiled module is called, and the list of what it declares and refers to.
MODULE, LIST = "Module.olean", "Module.ilean"


def compile_command(
    environment: LeanEnvironment, output: Path, snapshot: Path | None = None, *, lists: bool = False
) -> list[str]:
    """Return the command that checks the program on standard input and writes it as a compiled module.

    If it `lists`, what the program declares is written beside that. With a snapshot its imports come from
    there.
    """
    load = [] if snapshot is None else [f"--incr-load={snapshot}"]
    listing = ["-i", str(output.with_name(LIST))] if lists else []
    return [*cold_command(environment), *load, "-o", str(output), *listing]


def save_snapshot_command(environment: LeanEnvironment, snapshot: Path, header: Path) -> list[str]:
    """Return the command that writes the state after a header's imports to a file; Lean 4.32 or newer."""
    return [*environment.lean, *_ONE_CORE, f"--incr-header-save={snapshot}", str(header)]


def parse(stdout: bytes, stderr: bytes, *, program: str, mark: str, context_end: int = 0) -> Answer:
    """Read the answer of ``lean --json`` to a program, with the mark where Lean read it to its end.

    It has one JSON object a line; anything at all may stand between. NUL and lone surrogates become U+FFFD,
    so that a database takes every text. Elaboration can print to the same stream: a message survives what was
    printed before it on its line. It can also print what looks like a message of Lean's: of such a one no
    place is kept that the program does not have. Messages stand in the order of their places, for the order
    in which Lean gets them done is chance. Of the dataset's own context, which ends at `context_end`, errors
    are told and nothing else: that it has been read before is not to be seen.
    """
    messages, foreign = _separated(stdout)
    foreign.append(stderr.decode("utf-8", errors="replace"))
    said = [message for message in messages if not _is_of_mark(message, mark)]
    lines = Positions(program if said else "")
    ends = lines.position(context_end) if context_end and said else (0, 0)
    plain = sorted((_plain(each, lines) for each in said if not _is_talk(each, ends)), key=_place_of)
    return Answer(
        messages=_most_telling(plain),
        foreign_output=_clean("\n".join(foreign).strip()),
        reached_end=_has_mark(messages, mark),
    )


def _separated(stdout: bytes) -> tuple[list[Message], list[str]]:
    """Return the messages on a stream, and the lines, or parts of lines, that are none."""
    messages: list[Message] = []
    foreign: list[str] = []
    for line in stdout.decode("utf-8", errors="replace").split("\n"):
        found, rest = _split(line)
        messages += found
        if rest.strip():
            foreign.append(rest)
    return messages, foreign


def _has_mark(messages: list[Message], mark: str) -> bool:
    return any(message.text.strip() == mark for message in messages)


def _is_of_mark(message: Message, mark: str) -> bool:
    """Whether a message comes from the commands that print the mark."""
    text = message.text.strip()
    return text in (mark, f"Sort {_LEVEL}{mark} : Type {_LEVEL}{mark}")


def _place_of(message: Message) -> tuple[bool, int, int]:
    """Return what messages are sorted by; those without a place come last."""
    return message.line == 0, message.line, message.column


def _plain(message: Message, lines: Positions) -> Message:
    """Return a message in the form that all ways of running Lean can give it.

    Only ``lean --json`` tells every kind. An error's name comes both ways; that of a sorry and of a limit are
    told by their texts as well; no verdict looks at others. An end that is not behind the beginning is none.
    """
    begin = lines.offset(message.line, message.column)
    end = lines.offset(message.end_line, message.end_column)
    ends = begin is not None and end is not None and begin < end
    return replace(
        message,
        kind=_kind(message),
        text=_clean(message.text),
        line=0 if begin is None else message.line,
        column=0 if begin is None else message.column,
        end_line=message.end_line if ends else None,
        end_column=message.end_column if ends else None,
    )


_NAMED = "._namedError"


def _kind(message: Message) -> str:
    if says_sorry(message):
        return SORRY_KIND
    if is_heartbeat(message):
        return HEARTBEAT_KIND
    kind = _clean(message.kind)
    return kind.removesuffix(_NAMED) if kind.endswith(_NAMED) or kind.startswith("lean.") else ""


_START = re.compile(r'\{"(?:caption|data|endPos|fileName|severity)"')
_DECODER = json.JSONDecoder()


def _split(line: str) -> tuple[list[Message], str]:
    """Take the messages out of a line; the rest is what others printed."""
    messages: list[Message] = []
    rest = ""
    position = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(line, position)
        if start is None:
            break
        message, end = _message_at(line, start.start())
        rest += line[position : start.start()] if message else line[position:end]
        messages += [message] if message else []
        position = end
    return messages, rest + line[position:]


def _message_at(line: str, start: int) -> tuple[Message | None, int]:
    try:
        value, end = _DECODER.raw_decode(line, start)
    except (ValueError, RecursionError):  # what somebody printed can be nested, or have digits, without end
        return None, start + 1
    return _message(value), end


_SEVERITIES = frozenset({"error", "warning", "information"})


def _message(value: dict[str, object]) -> Message | None:
    severity, text = value.get("severity"), value.get("data")
    if not isinstance(severity, str) or severity not in _SEVERITIES or not isinstance(text, str):
        return None
    kind = value.get("kind")
    line, column = _position(value.get("pos"))
    end_line, end_column = _position(value.get("endPos"))
    return Message(
        severity=severity,
        kind=kind if isinstance(kind, str) else "",
        text=text,
        line=line or 0,
        column=column or 0,
        end_line=end_line,
        end_column=end_column,
    )


def _position(value: object) -> tuple[int | None, int | None]:
    if not isinstance(value, dict):
        return None, None
    line, column = _number(value.get("line")), _number(value.get("column"))
    return (None, None) if line is None or column is None else (line, column)


def _number(value: object) -> int | None:
    """Take a number that a 32-bit column of a database can hold; no program is longer."""
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _clean(text: str) -> str:
    text = storable(text)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _is_talk(message: Message, context_ends: tuple[int, int]) -> bool:
    """Whether a message is about a context, and no error."""
    return message.severity != "error" and message.line > 0 and (message.line, message.column) < context_ends


def _most_telling(messages: list[Message]) -> tuple[Message, ...]:
    if len(messages) <= MOST_MESSAGES:
        return tuple(messages)
    return tuple(messages[place] for place in sorted(most_telling(messages)[:MOST_MESSAGES]))
