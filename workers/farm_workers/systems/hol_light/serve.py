"""HOL Light step, the image: loads HOL Light, then forks for every tactic until the order socket closes.

It is started like `farm_workers.images.serve`, as ``... main()" NAMESPACES USER RUNTIME FOLDER`` with the
shared library of OCaml's runtime and the folder of HOL Light. The header that the worker sends is the script
of the toplevel, see `farm_workers.systems.hol_light.environment`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, cast

from farm_workers.images.child import Surroundings, confined
from farm_workers.images.protocol import CELLS, Asked
from farm_workers.images.serve import begin, give_up, recipe_of, serve
from farm_workers.systems.hol_light.ocaml import OCamlError, Runtime

#: Warm-up: forks inherit the tables that the judge builds at its first tactics.
_WARM = (b"1 + 1 = 2\0ARITH_TAC", b"!x:real. x <= x\0GEN_TAC THEN REAL_ARITH_TAC", b"F\0ALL_TAC")
_BROKEN = ("Error in included file", "Cannot find file", "Error: ")
_MOST_SAID = 300


def main() -> NoReturn:
    """Be an image of HOL Light, to the end."""
    where, user, library, folder = sys.argv[1:]
    worker, keepers = begin(namespaces=where == CELLS)
    said = Path("loading.txt").absolute()
    os.environ["HOLLIGHT_DIR"] = folder
    try:
        script = Path("script.ml").absolute()
        script.write_text(recipe_of(worker).decode(), encoding="utf-8")
        _lead_output(said)
        runtime = Runtime(Path(library), Path(folder, "ocaml"))

        def loaded() -> NoReturn:
            try:
                _require_whole(runtime, said)
                for asked in _WARM:
                    runtime.call("farm_judge", asked)
                _lead_output(Path(os.devnull))
                _close_files(keep={worker.fileno()} | (keepers.descriptors if keepers else frozenset()))
            except (OCamlError, OSError) as error:
                give_up(worker, error)
            serve(
                worker,
                keepers,
                lambda _what, place, files: _judge_in(runtime, place, files),
                user=int(user),
                where=where,
            )

        runtime.run(script, loaded)
    except (OCamlError, OSError) as error:
        give_up(worker, error)


def _lead_output(to: Path) -> None:
    """Redirect the output of OCaml to a file."""
    descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.close(descriptor)


def _require_whole(runtime: Runtime, said: Path) -> None:
    """Raise OCamlError if not all was loaded: a toplevel continues after an error."""
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
    wrong = [line for line in lines if line.startswith(_BROKEN)]
    if wrong or not runtime.has("farm_judge"):
        first = wrong[0] if wrong else "its last definition is missing"
        hint = "; install the package libnum-ocaml-dev" if "nums.cma" in first else ""
        raise OCamlError(f"HOL Light was not loaded: {first[:_MOST_SAID]}{hint}")


def _close_files(keep: set[int]) -> None:
    """Close the files that the toplevel was reading: no fork is to have them."""
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        with contextlib.suppress(OSError):  # the listing's own
            if number > 2 and number not in keep and os.readlink(f"/proc/self/fd/{number}").startswith("/"):  # noqa: PTH115
                os.close(number)


class _Asked(Asked, total=False):
    """The request of a judgement, as JSON."""

    goal: str
    tactic: str


def _judge_in(runtime: Runtime, place: Surroundings, files: Sequence[int]) -> int:
    """Judge one tactic in this process, the fork: its answer is one JSON object on its standard output."""
    confirmed = confined(place, files)
    if confirmed is None:
        return 1
    asked = cast("_Asked", confirmed)
    answer = os.dup(1)
    _lead_output(Path(os.devnull))  # HOL Light's progress messages are no results
    question = f"{asked['goal']}\0{asked['tactic']}".encode()
    said = memoryview(json.dumps(_answer(runtime.call("farm_judge", question))).encode())
    while said:
        said = said[os.write(answer, said) :]
    return 0


def _answer(told: bytes) -> dict[str, object]:
    word, place, said = told.decode(errors="replace").split("\n", 2)
    line, column = map(int, place.split())
    return {"word": word, "line": line, "column": column, "said": said}
