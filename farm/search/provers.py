"""Search step, provers: name the tactics to try on a state, from a list in a file or over HTTP."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from farm.errors import FarmError, UsageError

#: The lists that the farm ships, by the names that `--prover` takes.
SHIPPED = {"tidy": "core.txt", "tidy-mathlib": "mathlib.txt"}
_TIMEOUT_SECONDS = 60.0


class Suggestion(NamedTuple):
    """A tactic to try, and the logarithm of its probability."""

    tactic: str
    score: float = 0.0


class Answer(NamedTuple):
    """Tactics to try on a state, and the chance that it can be proved, None if the prover does not say."""

    suggestions: Sequence[Suggestion]
    value: float | None = None


#: Returns the tactics to try on a state, given its goals as Lean prints them.
Prover = Callable[[Sequence[str]], Sequence[Suggestion] | Answer]


def prover(named: str) -> Prover:
    """Return a prover: one of `SHIPPED`, a file with a list of tactics, or the URL of a service.

    Raises UsageError for a list that cannot be read.
    """
    if named.startswith(("http://", "https://")):
        return _over_http(named)
    listed = tactics_in(named)
    return lambda _goals: listed


def tactics_in(named: str) -> list[Suggestion]:
    """Return the tactics of a shipped list, or of a file: one a line, after its score and a tab if any.

    Empty lines and those that begin with ``#`` count for nothing. Raises UsageError.
    """
    shipped = SHIPPED.get(named)
    try:
        place = resources.files("farm.search") / "tactics" / shipped if shipped else Path(named)
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(SHIPPED)
        raise UsageError(
            f"the list of tactics {named} cannot be read ({error}); name a file, or one of {known}"
        ) from error
    found = [
        _suggestion(named, number, line)
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    ]
    if not found:
        raise UsageError(f"{named} lists no tactic; write one on each line")
    return found


def _suggestion(named: str, number: int, line: str) -> Suggestion:
    score, tab, tactic = line.partition("\t")
    if not tab:
        return Suggestion(line.strip())
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not tactic.strip():
        raise UsageError(f"{named}, line {number}: write a tactic, or a score, a tab and a tactic")
    return Suggestion(tactic.strip(), value)


def _over_http(url: str) -> Prover:
    """Return a prover that posts the goals of a state, and gets tactics with their scores.

    The request is ``{"goals": [...]}``, the answer ``{"tactics": [{"tactic": ..., "score": ...}, ...]}``, and
    perhaps a ``"value"`` from 0 to 1.
    """

    def suggested(goals: Sequence[str]) -> Answer:
        try:
            answer = httpx.post(url, json={"goals": list(goals)}, timeout=_TIMEOUT_SECONDS)
            answer.raise_for_status()
            said: Any = answer.json()
            value = said.get("value")
            return Answer(
                [_weighted(each) for each in said["tactics"]], None if value is None else _finite(value)
            )
        except httpx.HTTPError as error:
            raise FarmError(f"the prover at {url} does not answer: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            words = 'answer {"tactics": [{"tactic": ..., "score": ...}]}'
            raise FarmError(f"the prover at {url} answers in another form; {words}") from error

    return suggested


def _weighted(said: Any) -> Suggestion:
    return Suggestion(str(said["tactic"]), _finite(said.get("score", 0.0)))


def _finite(said: Any) -> float:
    value = float(said)
    if not math.isfinite(value):
        raise ValueError(f"{said} is no finite number")
    return value
