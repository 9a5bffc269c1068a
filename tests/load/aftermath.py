"""What has to hold after a load: every item one verdict, the right one, told to all who asked. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.load.clients import Asked, Told
from tests.load.facts import Catalogue, Stored
from tests.load.items import Known

#: Rows that the catalogue may gain in a run: ones of its own for each batch would be thousands.
_MOST_ROWS, _MOST_BYTES = 100, 1 << 20


def wrong_answers(everyone: Sequence[Asked]) -> Iterator[str]:
    """Say which clients were told something wrong, or nothing."""
    for asked in everyone:
        if asked.trouble is not None or asked.seconds is None:
            yield f"a client ({asked.way}) of {asked.items[0].name} was not answered: {asked.trouble}"
            continue
        told = asked.told
        if told is not None and len(told) != len(asked.items):
            yield f"a client ({asked.way}) of {len(asked.items)} items was told {len(told)}"
            continue
        for known, each in zip(asked.items, told or (), strict=False):
            if not _is_right(known, each, given_up=asked.given_up):
                yield f"{known.name} ({asked.way}) must be {known.verdict}, and its client was told {each}"


def _is_right(known: Known, told: Told, *, given_up: bool) -> bool:
    if told.status == "cancelled":
        return given_up and told.reward is None and told.verdict == (None, "user")
    verdict = known.verdict if told.verdict is None else told.verdict
    return (told.status, verdict, told.reward) == ("done", known.verdict, known.reward)


def wrong_items(everyone: Sequence[Asked], stored: Sequence[Stored]) -> Iterator[str]:
    """Say which items are in the store twice, without a verdict, with a wrong one, or not at all."""
    found: dict[str, list[Stored]] = defaultdict(list)
    for item in stored:
        found[item.name].append(item)
    for asked in everyone:
        for place, known in enumerate(asked.items):
            mine = found.pop(known.name, [])
            told = asked.told[place] if asked.told and place < len(asked.told) else None
            yield from _wrong(asked, known, mine, told)
    if found:
        yield f"the store has items that nobody asked for: {sorted(found)[:10]}"


def _wrong(asked: Asked, known: Known, mine: Sequence[Stored], told: Told | None) -> Iterator[str]:
    if asked.once and len(mine) > 1:
        yield f"{known.name} ({asked.way}) is stored {len(mine)} times"
    if told is not None and told.verdict is not None and told.id not in {each.id for each in mine}:
        yield f"{known.name} ({asked.way}) was told to be {told.id}, and is {[each.id for each in mine]}"
    for each in mine:
        if each.cancelled is not None and asked.given_up:
            continue
        if each.status != "done" or (each.verdict, each.reason) != known.verdict or each.cancelled:
            yield f"{known.name} ({asked.way}) must be {known.verdict}, and the store has {each}"


def grown(before: Catalogue, after: Catalogue) -> Iterator[str]:
    """Say by how much more than allowed the catalogue has grown."""
    rows = after.tables + after.columns + after.dead - before.tables - before.columns - before.dead
    if rows > _MOST_ROWS or after.size - before.size > _MOST_BYTES:
        yield f"the catalogue grew from {before} to {after}"


def too_few_lost(killed: int, outcomes: Mapping[str, int], *, at_least: int) -> Iterator[str]:
    """Say that a load was hardly disturbed. A Lean that is killed need not have been at a check."""
    lost = killed + outcomes.get("lost", 0)
    if lost < at_least:
        yield f"only {lost} checks lost their Lean or their worker, and not {at_least}: {dict(outcomes)}"
