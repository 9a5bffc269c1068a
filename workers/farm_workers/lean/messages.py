"""Lean step: builds the input of Lean and parses its output. Pure: it starts no process."""

from __future__ import annotations

import hashlib
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
#: A line that is no message is searched this often for a message behind foreign output.
_MOST_STARTS = 16


def with_end_mark(program: str, mark: str) -> str:
    """Return a program with a mark behind it; `completes` and `parse` look for it in Lean's answer.

    Lean ends with status 0 and no message when a program stops it early (a call that ends the process): only
    a mark that the program could not know proves that Lean read it to its end. The mark is an ``#exit`` at a
    random place, where Lean warns of it. Lean stops at a command that is an ``#exit``, but not at one that
    contains it: if a command of the program takes the mark as a part of itself, Lean continues to a bracket
    that begins no command, which is an error.
    """
    lines, column = _beyond(mark)
    return f"{program}\n" + "\n" * lines + " " * column + f"#exit\n) {mark}\n"


#: Places of a mark: so many lines behind the program at most, and so many columns.
_MOST_LINES = _MOST_COLUMNS = 1 << 12


def _beyond(mark: str) -> tuple[int, int]:
    """Return how many empty lines, and then columns, stand before a mark."""
    drawn = int.from_bytes(hashlib.sha256(mark.encode()).digest())
    return drawn % _MOST_LINES, drawn // _MOST_LINES % _MOST_COLUMNS


def _mark_place(program: str, mark: str) -> tuple[int, int]:
    """Return line, from 1, and column, from 0, of the mark behind a program."""
    lines, column = _beyond(mark)
    return program.count("\n") + 2 + lines, column


def completes(stdout: bytes, *, program: str, mark: str) -> bool:
    """Return whether Lean's output for `with_end_mark` shows that it read the program apart from the mark.

    If not, the mark broke the program's last command or was parsed as a part of it, or the program turns
    all warnings into errors, including the mark's.
    """
    said, _ = _separated(stdout)
    last = program.count("\n") + 1
    behind = (each for each in said if max(each.line, each.end_line or 0) > last)
    has_mark = len(_without_mark(said, program, mark)) < len(said)
    return has_mark and all(each.severity != "error" for each in behind)


def reports_error(stdout: bytes) -> bool:
    """Return whether Lean's answer to `with_end_mark` contains an error, be it about the mark."""
    said, _ = _separated(stdout)
    return any(each.severity == "error" for each in said)


def is_its_only_error(stdout: bytes, *, program: str, mark: str) -> bool:
    """Tell from Lean's answer to `with_end_mark` whether the mark is all that Lean takes for an error."""
    said, _ = _separated(stdout)
    wrong = [(each.line, each.column) for each in said if each.severity == "error"]
    return wrong == [_mark_place(program, mark)]


#: One core per check, because the farm runs one check per core. Proofs are elaborated in order, so that the
#: one thread is free to report finished commands while the next one hangs. ``weak``: versions of Lean without
#: this option ignore it.
_ONE_CORE = ("-j1", "-Dweak.Elab.async=false")


def cold_command(environment: LeanEnvironment) -> list[str]:
    """Return the command that checks the program on standard input in a process of its own.

    ``-M`` is not given: Lean compares it with
    resident memory, in which the mapped files of the library count, so it would blame small proofs for large
    imports; the box watches private memory instead. An environment's own options may set it.
    """
    return [*environment.lean, *_ONE_CORE, "--json", "--stdin"]


#: The file names of a compiled module, and of the list of its declarations and references.
MODULE, LIST = "Module.olean", "Module.ilean"


def compile_command(environment: LeanEnvironment, output: Path, *, lists: bool = False) -> list[str]:
    """Return the command that checks the program on standard input and writes it as a compiled module.

    With `lists`, the list of declarations is written beside the module.
    """
    listing = ["-i", str(output.with_name(LIST))] if lists else []
    return [*cold_command(environment), "-o", str(output), *listing]


def wait_command(environment: LeanEnvironment) -> list[str]:
    """Return the command that imports a header and then waits for its program, as editors have it.

    Lean reports each message at once: by default it would wait for more.
    """
    return [*environment.lean, *_ONE_CORE, "-Dserver.reportDelayMs=0", "--worker"]


def parse(stdout: bytes, stderr: bytes, *, program: str, mark: str, context_end: int = 0) -> Answer:
    """Parse the output of ``lean --json`` for a program, with the mark if Lean read it to its end.

    The output has one JSON object a line; foreign text may stand between. NUL and lone surrogates become
    U+FFFD, so that a database takes every text. Elaboration can print to the same stream: a message is found
    behind text printed on its line. It can also imitate a message: places outside the program are dropped.
    Messages are sorted by place, because Lean finishes them in random order. Of the dataset's own context,
    which ends at `context_end`, only errors are kept, so that the output does not depend on whether the
    context was shared.
    """
    messages, foreign = _separated(stdout)
    foreign.append(stderr.decode("utf-8", errors="replace"))
    said = _without_mark(messages, program, mark)
    lines = Positions(program if said else "")
    ends = lines.position(context_end) if context_end and said else (0, 0)
    plain = sorted((_plain(each, lines) for each in said if not _is_talk(each, ends)), key=_place_of)
    return Answer(
        messages=_most_telling(plain),
        foreign_output=_clean("\n".join(foreign).strip()),
        reached_end=len(said) < len(messages),
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


def messages_in(line: bytes) -> list[Message]:
    """Return the messages on one line of Lean's output."""
    return _split(line.decode("utf-8", errors="replace"))[0]


def _without_mark(messages: list[Message], program: str, mark: str) -> list[Message]:
    """Return the messages but for the mark, which a fork prints, and of which a fresh Lean warns."""
    place = _mark_place(program, mark)
    return [each for each in messages if each.text.strip() != mark and (each.line, each.column) != place]


def _place_of(message: Message) -> tuple[bool, int, int]:
    """Return the sort key of a message; messages without a place come last."""
    return message.line == 0, message.line, message.column


def _plain(message: Message, lines: Positions) -> Message:
    """Return a message in the form that all ways of running Lean can give it.

    Only ``lean --json`` reports every kind. All ways report an error's name; those of a sorry and of a limit
    also follow from their texts; verdicts depend on no other. An end that is not behind the beginning is
    dropped.
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
    """Take the messages out of a line; the rest is foreign output."""
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
    except (ValueError, RecursionError):  # foreign output may nest, or have digits, without end
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
