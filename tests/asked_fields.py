"""Writes what follows from the declared options: the fields that the service accepts, and the client's types.

`make settings` writes them from the declarations; a test fails while one of the files differs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill

from farm.asked import BATCH, LINE, Form, Option, Place, declared
from farm.exit_status import ExitStatus
from farm.judging.result_options import ResultOptions
from farm.judging.submit_options import SubmitOptions
from farm.task import TASK_FIELDS
from tests.settings_tables import with_table

ROOT = Path(__file__).parents[1]
OPTIONS: Sequence[Option] = (*declared(SubmitOptions), *declared(ResultOptions))
_WIDTH = 106
_WRITTEN_FROM = "`make settings` writes this file from the declarations (`farm.asked`)."

_SERVICE = f'''"""The fields of a batch and of an item that are options.

{_WRITTEN_FROM}
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from farm.service.exact import AnswerForm, Group, Tasked, Timeout, Word
'''
_CLIENT = f'''"""The types of the options of items and calls.

{_WRITTEN_FROM}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

'''


def _at(place: Place, options: Sequence[Option]) -> list[tuple[Option, Form]]:
    return [(each, each.form) for each in options if each.places & place and each.form is not None]


def _aliases(options: Sequence[Option]) -> Iterator[str]:
    for each in options:
        if each.form is not None and each.form.alias:
            yield f"{each.form.alias} = {each.form.literal}\n"


def service(options: Sequence[Option] = OPTIONS) -> str:
    """Return the module with the service's models of these options."""
    models = (
        ("BatchFields", BATCH, "The options of a batch's checks, and of how its results are shown."),
        ("LineFields", LINE, "The options that an item may set for itself."),
    )
    text = _SERVICE + "\n" + "".join(_aliases(options))
    for name, place, sentence in models:
        text += f'\n\nclass {name}(Tasked):\n    """{sentence}"""\n\n'
        text += "".join(_field(each, form, place) for each, form in _at(place, options))
    return text


def _field(option: Option, form: Form, place: Place) -> str:
    absent = option.absent if place is BATCH else None
    kind = form.service if absent is not None else f"{form.service} | None"
    told = f"description={json.dumps(option.meaning)}"
    if absent == []:
        return f"    {option.name}: Annotated[{kind}, Field({told}, default_factory=list)]\n"
    return f"    {option.name}: Annotated[{kind}, Field({told})] = {absent!r}\n"


def client(options: Sequence[Option] = OPTIONS) -> str:
    """Return the module with the client's types of these options."""
    text = _CLIENT + "".join(_aliases(options))
    text += """

class AnswerForm(TypedDict, total=False):
    \"\"\"The form that an answer must have: numbers, and no use of the constants in `without`.\"\"\"

    form: Literal["numeral", "numerals"]
    without: Sequence[str]
"""
    task = [each for each in options if each.name in TASK_FIELDS]
    rest = [each for each in options if each.name not in TASK_FIELDS]
    text += _types("TaskFields", "TypedDict", "What a proof has to show beyond the usual.", _at(LINE, task))
    text += _types(
        "LineFields", "TaskFields", "The options that an item may set for itself.", _at(LINE, rest)
    )
    sentence = "The options of a call's checks; an absent option has the service's default."
    return text + _types("Options", "TaskFields", sentence, _at(BATCH, rest))


def _types(name: str, base: str, sentence: str, options: Sequence[tuple[Option, Form]]) -> str:
    fields = [(each, form) for each, form in options if form.client]
    text = f'\n\nclass {name}({base}, total=False):\n    """{sentence}"""\n\n'
    for each, form in fields:
        meaning = f"{each.meaning[0].upper()}{each.meaning[1:]}."
        text += fill(meaning, _WIDTH, initial_indent="    #: ", subsequent_indent="    #: ")
        text += f"\n    {each.name}: {form.client}\n"
    return text


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", "asked_fields.py", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def http_page(text: str, options: Sequence[Option] = OPTIONS) -> str:
    """Return the page about HTTP with the table of a batch's options; links stay on the same words."""
    chosen = [each for each, _ in _at(BATCH, options) if each.name not in TASK_FIELDS]
    rows = [f"| `{each.name}` | {each.default} | {each.meaning} |" for each in chosen]
    rows.append("| `wait_seconds` | 0 | how long the call waits, at most 600 |")
    return with_table(text, "| field | default | meaning |\n|---|---|---|\n", rows)


def tasks_page(text: str, options: Sequence[Option] = OPTIONS) -> str:
    """Return the page about tasks with the table of all options."""
    rows = [f"| `{each.name}` | {_places(each)} | {each.meaning} |" for each in options]
    return with_table(text, "| option | where | meaning |\n|---|---|---|\n", rows)


def _places(option: Option) -> str:
    flag = "" if option.flag is None else (*option.flag.names, f"--{option.name.replace('_', '-')}")[0]
    places = [f"`{flag.partition('/')[0]}`"] if flag else []
    places += ["batch"] if option.places & BATCH else []
    return ", ".join([*places, *(["line and item"] if option.places & LINE else [])])


def reliability_page(text: str, options: Sequence[Option] = OPTIONS) -> str:
    """Return the page about reliability with the options on which the sharing of a check depends."""
    names = [f"`{each.name}`" for each in options if each.identity and each.name != "environment"]
    listed = fill(f"these options: {', '.join(names)}", 118)
    return re.sub(r"these options: [^(;]*(?=\n\()", lambda _: listed, text, count=1)


def commands_page(text: str) -> str:
    """Return the page about commands with the table of exit statuses."""
    rows = [f"| {each.value} | {each.meaning} |" for each in ExitStatus]
    return with_table(text, "| exit status | meaning |\n|---|---|\n", rows)


#: What is written from the declarations: each file, and the function that makes its text of the present one.
WRITTEN: Mapping[Path, Callable[[str], str]] = {
    ROOT / "farm" / "service" / "asked_fields.py": lambda _: _formatted(service()),
    ROOT / "farm" / "client" / "asked_fields.py": lambda _: _formatted(client()),
    ROOT / "docs" / "reference" / "commands.md": commands_page,
    ROOT / "docs" / "use" / "http.md": http_page,
    ROOT / "docs" / "use" / "tasks.md": tasks_page,
    ROOT / "docs" / "why" / "reliability.md": reliability_page,
}
