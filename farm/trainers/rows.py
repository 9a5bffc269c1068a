"""Tells rows at which the dataset is at fault from those that the farm judged; pure."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from farm.client import Fault, Item, Refused, Result
from farm.trainers.problems import BadColumn

#: The reason in the result of a row that the farm was not asked about, or refused: its `detail` says why.
BAD_ROW = "bad_row"
#: The farm's own reason for a statement that does not compile.
_BAD_CHALLENGE = "bad_challenge"
_OF_THE_DATASET = ("header", "context", "formal_statement")
_SHOWN = 60


class Asking:
    """The rows of one call: which are still to be asked about, and what is known of the others.

    Raises BadColumn, that of the first row, where no row can be asked about.
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
        """Whether the farm is still to be asked."""
        return bool(self._open)

    @property
    def items(self) -> list[Item]:
        """What the farm is to be asked about next."""
        return list(self._open.values())

    @property
    def results(self) -> list[Result]:
        """The results of all rows, in their order."""
        return [self._found[number] for number in range(self._count)]

    def take(self, results: Sequence[Result]) -> None:
        """Take what the farm answered about `items`."""
        for number, result in zip(list(self._open), results, strict=True):
            self._found[number] = self._blamed(replace(result, index=number))
        self._open = {}

    @contextmanager
    def refusals(self) -> Generator[None, None, None]:
        """Take a refusal that names rows as these rows' fault; raises any other."""
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
        """Return a result whose detail names the row and the field where the dataset is at fault."""
        if result.reason != _BAD_CHALLENGE:
            return result
        origins = [each.origin for each in result.messages if each.severity == "error"]
        field = next((each for each in origins if each in _OF_THE_DATASET), "formal_statement")
        return replace(result, detail=f"{self._shown(result.index)}: {field}: {result.detail}")

    def _shown(self, number: int) -> str:
        """Return the row's place in the call and its name, or else the beginning of its statement."""
        row = self._open.get(number)
        fields = row if isinstance(row, Mapping) else {}
        name = str(fields.get("name") or fields.get("formal_statement") or "")
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        return f"row {number + 1} of {self._count}" + (f" ({shown!r})" if shown else "")


def faults_of(results: Sequence[Result]) -> dict[int, str]:
    """Return the rows at which the dataset is at fault; the words name the row, the field and the fault."""
    return {each.index: each.detail for each in results if each.reason in (BAD_ROW, _BAD_CHALLENGE)}


def _words(fault: Fault) -> str:
    return f"{fault.field}: {fault.why}" if fault.field else fault.why
