"""What has to hold after all: every line its one verdict, the right one, and nothing left over."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.chaos.facts import DISK_TROUBLE, KNOWN_AT_ONCE, UNFINISHED, Attempt, Facts, Line
from tests.chaos.workers import Worker
from tests.processes import processes

#: At most so many lines of one sort of complaint are told.
_MOST = 10

Verdict = tuple[str, str]


def wrong_verdicts(lines: list[Line], expected: list[Verdict]) -> Iterator[str]:
    """Say which lines of a run have another verdict than expected, or none."""
    if [line.number for line in lines] != list(range(1, len(expected) + 1)):
        yield f"the run has {len(lines)} lines and not {len(expected)}"
        return
    for line, verdict in zip(lines, expected, strict=True):
        if line.status != "done":
            yield f"line {line.number} is {line.status} (check {line.check})"
        if line.verdict != verdict:
            yield f"line {line.number} is {line.verdict} and not {verdict} (check {line.check})"


def wrong_attempts(lines: list[Line], attempts: list[Attempt]) -> Iterator[str]:
    """Say of which checks the attempts do not tell what happened."""
    made: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        made[attempt.check].append(attempt)
    for line in {line.check: line for line in lines}.values():
        if problem := _wrong(line, made[line.check]):
            told = [(each.number, each.worker, each.outcome) for each in made[line.check]]
            yield f"{problem}: line {line.number}, check {line.check}, attempt {line.attempt}, {told}"


def _wrong(line: Line, made: list[Attempt]) -> str | None:
    if line.verdict is None or (line.verdict[1] in KNOWN_AT_ONCE and not made):
        return None
    if [each.number for each in made] != list(range(1, line.attempt + 1)):
        return "the attempts have gaps or doubles"
    if not made or made[-1].outcome != line.verdict[0]:
        return "the last attempt has another outcome than the verdict"
    if not {each.outcome for each in made[:-1]} <= UNFINISHED:
        return "an earlier attempt had a verdict"
    return None


def blamed_for_disks(attempts: list[Attempt]) -> Iterator[str]:
    """Say which checks were blamed for the full disk of a worker."""
    for attempt in attempts:
        if attempt.outcome == "judge_error" and any(word in str(attempt.detail) for word in DISK_TROUBLE):
            told = f"check {attempt.check}, attempt {attempt.number}, {attempt.worker}: {attempt.detail}"
            yield f"a check was blamed for a worker's disk: {told}"


def wrong_manifest(path: Path, before: list[dict[str, object]], lines: list[Line]) -> Iterator[str]:
    """Say what is wrong with the manifest that was written: order, fields of others, verdicts."""
    try:
        after = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        yield f"the manifest cannot be read: {error}"
        return
    if len(after) != len(before):
        yield f"the manifest has {len(after)} lines and not {len(before)}"
        return
    for number, (old, new, line) in enumerate(zip(before, after, lines, strict=True), 1):
        if {name: new.get(name) for name in old} != old:
            yield f"line {number} of the manifest has lost a field"
        told = new.get("farm", {})
        if (told.get("verdict"), told.get("reason")) != line.verdict:
            yield f"line {number} of the manifest is {told.get('verdict')} and in the store {line.verdict}"


def left_in_store(facts: Facts) -> Iterator[str]:
    """Say which leases and locks are left when nobody is at work any more."""
    if running := facts.running():
        yield f"leases are left of the checks (check, attempt): {running[:_MOST]}"
    if locks := facts.advisory_locks():
        yield f"advisory locks are held: {locks[:_MOST]}"


def left_on_machine(workers: list[Worker], folder: Path) -> Iterator[str]:
    """Say which processes, control groups and folders of boxes workers that have ended left."""
    for worker in workers:
        for each in worker.left():
            yield f"a process of {worker.name} is left: {each.pid} {each.command[:200]}"
        for box in worker.disk.folder.rglob("farm-*"):
            if box.name.startswith("farm-check-") or _OWN.fullmatch(box.name):
                yield f"a folder of {worker.name} is left: {box}"
    for each in processes():
        if str(folder / "disk") in each.command:
            yield f"a process that names a worker's disk is left: {each.pid} {each.command[:200]}"
    for group in own_groups({life.pid for worker in workers for life in worker.lives}):
        yield f"a control group is left: {group}"


#: What the farm calls folders and control groups of its own: the process and its start come first.
_OWN = re.compile(r"farm-(\d+)-(\d+)-(\d+)-\d+")


def own_groups(pids: set[int]) -> list[Path]:
    """Return the control groups that are there of processes of the farm, which may be gone."""
    # Not rglob: others' groups may go while it looks.
    found = (Path(folder) / name for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    names = ((group, _OWN.fullmatch(group.name)) for group in found)
    return [group for group, name in names if name and int(name[1]) in pids]


def few(complaints: Iterator[str]) -> list[str]:
    """Return complaints of one sort: the first of them, and how many more there are."""
    every = list(complaints)
    more = [f"... and {len(every) - _MOST} more of the kind"] if len(every) > _MOST else []
    return [*every[:_MOST], *more]


def gap_after(when: float, decided: list[float]) -> float | None:
    """Return how long after a moment the next verdict was recorded, None when none was."""
    return next((each - when for each in decided if each >= when), None)


def longest_gap(decided: list[float]) -> float:
    """Return the longest time between two verdicts."""
    return max((later - earlier for earlier, later in pairwise(decided)), default=0.0)
