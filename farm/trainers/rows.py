"""Separates rows at which the dataset is at fault from rows that the farm judged, for all trainers; pure."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from farm.client import Fault, Item, Refused, Result
from farm.trainers.problems import BadColumn

#: The reason in the result of a row that was not sent to the farm or was refused; its `detail` explains it.
BAD_ROW = "bad_row"
#: The farm's own reason for a statement that does not compile.
_BAD_CHALLENGE = "bad_challenge"
_OF_THE_DATASET = ("header", "context", "formal_statement")
_SHOWN = 60


class Asking:
    """The rows of one call: those still to be checked, and the results of the others.

    Raises the BadColumn of the first row if no row can be checked.
    """

    def __init__(self, rows: Sequence[Item | BadColumn]) -> None:
        self._count, self._found = len(rows), dict[int, Result]()
        self._open = {number: each for number, each in enumerate(rows) if not isinstance(each, BadColumn)}
        bad = {number: each for number, each in enumerate(rows) if isinstance(each, BadColumn)}
        if bad and not self._open:
            raise next(iter(bad.values()))
        for number, each in bad.items():
            self._give_up(number, str(each).removesuffix("."))

    @property
    def is_open(self) -> bool:
        """Whether rows are still to be checked."""
        return bool(self._open)

    @property
    def items(self) -> list[Item]:
        """The items to check next."""
        return list(self._open.values())

    @property
    def results(self) -> list[Result]:
        """The results of all rows, in their order."""
        return [self._found[number] for number in range(self._count)]

    def take(self, results: Sequence[Result]) -> None:
        """Take the results of `items`."""
        for number, result in zip(list(self._open), results, strict=True):
            self._found[number] = self._blamed(replace(result, index=number))
        self._open = {}

    @contextmanager
    def refusals(self) -> Generator[None, None, None]:
        """Turn a refusal that names rows into results of these rows; raises any other refusal."""
        try:
            yield
        except Refused as error:
            numbers = list(self._open)
            faults = {each.item: each for each in error.faults if each.item in range(len(numbers))}
            if not faults:
                raise
            for place, fault in faults.items():
                self._give_up(numbers[place or 0], _words(fault))

    def _give_up(self, number: int, why: str) -> None:
        shown = f"{self._shown(number)}: {why}"
        self._open.pop(number, None)
        self._found[number] = Result(index=number, reason=BAD_ROW, detail=shown)

    def _blamed(self, result: Result) -> Result:
        """Return a result; if the dataset is at fault, its detail names the row and the field."""
        if result.reason != _BAD_CHALLENGE:
            return result
        origins = [each.origin for each in result.messages if each.severity == "error"]
        field = next((each for each in origins if each in _OF_THE_DATASET), "formal_statement")
        return replace(result, detail=f"{self._shown(result.index)}: {field}: {result.detail}")

    def _shown(self, number: int) -> str:
        """Return the row's number in the call, with its name or the beginning of its statement."""
        row = self._open.get(number)
        fields = row if isinstance(row, Mapping) else {}
        name = str(fields.get("name") or fields.get("formal_statement") or "")
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        return f"row {number + 1} of {self._count}" + (f" ({shown!r})" if shown else "")


def faults_of(results: Sequence[Result]) -> dict[int, str]:
    """Return the messages for rows at which the dataset is at fault; each names row, field and fault."""
    return {each.index: each.detail for each in results if each.reason in (BAD_ROW, _BAD_CHALLENGE)}


def _words(fault: Fault) -> str:
    return f"{fault.field}: {fault.why}" if fault.field else fault.why
