"""Live tables of the whole farm for a person: workers, queues and rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.run_tables import COLOURS
from farm.cli.terminal import count, visible
from farm.sessions.wire import Beat
from farm.store.environments import STARTING, UNFIT
from farm.store.overview import AtWork, Queue, Unfinished
from farm.store.workers import State, Worker

#: A live display counts at most this many checks of each queue
MOST_COUNTED = 10_000
#: A live display shows at most this many workers.
MOST_SHOWN = 20

_CUT = (
    f"+: only the first {MOST_COUNTED} checks of an environment and class are counted; more, also of other "
    "tiers, may wait behind them. To count all: farm status"
)

#: Replaces the table of workers if the farm has none.
NO_WORKERS = "There are no workers; start one with: farm worker"

#: At most this many silent workers are named.
_MOST_NAMED = 3
_STATE_COLOURS = {
    "silent": "bold red",
    STARTING: "yellow",
    UNFIT: "red",
    State.UNWELL: "red",
    State.STOPPING: "yellow",
    State.SERVING: "green",
}


def duration(seconds: float) -> str:
    """Return a time in the largest unit and the next smaller one, such as 3 min 20 s."""
    whole = max(0, int(seconds))
    for unit, size, lesser, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {lesser}" if rest else "")
    return f"{whole} s"


def at_work_words(found: Sequence[AtWork]) -> str:
    """Return a worker's current work in words: the number of its checks, and the longest of them."""
    if not found:
        return ""
    longest, others = found[0], len(found) - 1
    line = f"{longest.run_id}:{longest.line}" if longest.run_id else f"check {longest.check_id}"
    named = f" {longest.name[:40]}" if longest.name else ""
    more = f" and {others} more" if others else ""
    return f"{line}{named}, {duration(longest.seconds)}{more}"


def by_worker(found: Iterable[AtWork]) -> dict[str, list[AtWork]]:
    """Return the current checks by the name of their worker."""
    grouped: dict[str, list[AtWork]] = {}
    for each in found:
        grouped.setdefault(each.worker, []).append(each)
    return grouped


def workers_table(workers: Iterable[Worker], at_work: Mapping[str, Sequence[AtWork]]) -> Table:
    """Return a table of workers, with all that each has reported."""
    facts = ("environments", "isolation", "farm", "lives", "heard of")
    table = _table("worker", "state", "busy", "at work on", *facts)
    for each in workers:
        served = [f"{one['name']} ({one['toolchain']})" for one in each.environments]
        pending = [f"{one.name}: {one.state} for {duration(one.seconds)}" for one in each.pending]
        environments = ", ".join(served + pending)
        table.add_row(
            *_doing(each, at_work),
            Text(visible(environments)),
            Text(visible(each.isolation)),
            Text(visible(each.farm_version)),
            duration(each.age_seconds),
            f"{duration(each.silent_seconds)} ago",
        )
    return table


def _busy_table(workers: Iterable[Worker], at_work: Mapping[str, Sequence[AtWork]]) -> Table:
    """Return a table with the current work of each worker."""
    table = _table("worker", "state", "busy", "at work on", "heard of")
    for each in workers:
        table.add_row(*_doing(each, at_work), f"{duration(each.silent_seconds)} ago")
    return table


def _table(name: str, *others: str) -> Table:
    table = Table()
    table.add_column(name, overflow="fold")  # a truncated name would not identify the node
    for each in others:
        table.add_column(each)
    return table


def _doing(worker: Worker, at_work: Mapping[str, Sequence[AtWork]]) -> tuple[Text, ...]:
    state = worker.shown_state
    return (
        Text(visible(worker.name)),
        Text(state, style=_STATE_COLOURS.get(state, "")),
        Text(f"{worker.busy}/{worker.threads}"),
        Text(_one_line(at_work_words(at_work.get(worker.name, ())))),
    )


def remedies(workers: Iterable[Worker]) -> Iterator[str]:
    """Yield remedies for workers that take no checks and do not end; one sentence for all silent ones."""
    found = list(workers)
    if silent := [each for each in found if each.is_silent]:
        yield _silent(silent)
    for each in found:
        if not each.is_silent and each.state == State.UNWELL:
            yield (
                f"{each.name} takes no checks, because its machine fails at known programs; read its log, or "
                "run on that machine: farm doctor"
            )
        else:
            yield from (f"{one.name} is {one.words}" for one in each.pending if one.state == UNFIT)


def _silent(workers: Sequence[Worker]) -> str:
    first = workers[0]
    if len(workers) == 1:
        words = (
            f"{first.name} has been silent for {duration(first.silent_seconds)}, longer than its lease of "
            f"{first.lease_seconds:g} s"
        )
    else:
        more = len(workers) - _MOST_NAMED
        names = ", ".join(each.name for each in workers[:_MOST_NAMED]) + (
            f" and {more} more" if more > 0 else ""
        )
        words = f"{names} have been silent for longer than their leases"
    longest = max(each.forgotten_after_seconds for each in workers)
    return (
        f"{words}: other workers take over their checks. See whether they run and reach PostgreSQL, or start "
        f"others there: farm worker. Killed workers are no longer listed after {duration(longest)}."
    )


def queues_table(queues: Iterable[Queue], workers: Sequence[Worker]) -> Table:
    """Return a table of queues with waiting checks, the most urgent first."""
    table = Table("environment", "class", "tier", "waiting", "oldest", "workers")
    for each in queues:
        number = sum(worker.takes(each.environment, each.tier) for worker in workers)
        most = "+" if each.is_cut else ""
        table.add_row(
            Text(visible(each.environment)),
            each.priority.name.lower(),
            each.tier,
            f"{each.waiting}{most}",
            duration(each.oldest_seconds),
            Text(f"{number}") if number else Text("none", style="bold red"),
        )
    return table


def unserved(queues: Iterable[Queue], workers: Sequence[Worker]) -> Iterator[str]:
    """Yield a sentence for each queue that no worker serves."""
    for each in queues:
        if not any(worker.takes(each.environment, each.tier) for worker in workers):
            waits = "waits" if each.waiting == 1 else "wait"
            pending = [
                one.words
                for worker in workers
                if not worker.is_silent
                for one in worker.pending
                if one.name == each.environment
            ]
            why = "and no worker takes them; start one with: farm worker"
            if pending:
                why = f"and no worker takes them: {each.environment} is {'; '.join(pending)}"
            yield (
                f"{count(each.waiting, 'check')} {waits} in {each.environment} on the tier {each.tier}, {why}"
            )


def unfinished_batches(found: Unfinished) -> Iterator[str]:
    """Return the number of unfinished batches in words."""
    if found.batches:
        many = "1 batch is" if found.batches == 1 else f"{found.batches} batches are"
        yield f"{many} unfinished, with {count(found.items, 'item')} left."


def mix(verdicts: Mapping[str, int]) -> Text:
    """Return the shares of verdicts in words, the most frequent first."""
    total, words = sum(verdicts.values()), Text()
    for verdict, number in sorted(verdicts.items(), key=lambda item: -item[1]):
        words.append(f"{', ' if words else ''}{verdict} ", style=COLOURS.get(verdict, ""))
        words.append(f"{number / total:.1%}")
    return words


def top(
    *,
    minute: Mapping[str, int],
    minutes: Mapping[str, int],
    queues: Sequence[Queue],
    workers: Sequence[Worker],
    sessions: Beat | None,
    at_work: Mapping[str, Sequence[AtWork]],
) -> RenderableType:
    """Return one picture of the whole farm; `minute` and `minutes` are the verdicts of the last 1 and 5."""
    live = [each for each in workers if not each.is_silent]
    busy, threads = sum(each.busy for each in live), sum(each.threads for each in live)
    lately = sum(minutes.values())
    failed = minutes.get("timeout", 0), minutes.get("judge_error", 0)
    first = _first(workers, at_work)
    shares = [f"{number / lately:.1%}" if lately else "-" for number in failed]
    return Group(
        Text(
            f"{sum(minute.values()) / 60:.1f} checks/s over the last minute; {busy} of {threads} threads busy"
        ),
        Text("last minute: ").append_text(mix(minute) if minute else Text("nothing decided")),
        Text(f"last 5 minutes: timeouts {shares[0]}, judge errors {shares[1]}"),
        *([Text(_in_sessions(sessions))] if sessions and sessions["sessions"] else []),
        queues_table(queues, workers) if queues else Text("Nothing waits."),
        *([Text(_CUT)] if any(each.is_cut for each in queues) else []),
        _busy_table(first, at_work) if workers else Text(NO_WORKERS),
        *(
            [Text(f"and {len(workers) - len(first)} more: farm status --workers")]
            if len(workers) > len(first)
            else []
        ),
    )


def _in_sessions(beat: Beat) -> str:
    words = f"{count(beat['sessions'], 'session')}: {beat['steps']} tactics in the last second"
    return f"{words}, {beat['killed']} killed" if beat["killed"] else words


def _first(workers: Sequence[Worker], at_work: Mapping[str, Sequence[AtWork]]) -> list[Worker]:
    """Return the workers to show: a few silent ones, then unhealthy ones, then by their longest check."""

    def urgency(worker: Worker) -> tuple[bool, bool, float]:
        longest = max((each.seconds for each in at_work.get(worker.name, ())), default=0.0)
        return not worker.is_silent, worker.state == State.SERVING, -longest

    in_order = sorted(workers, key=urgency)
    silent = sum(each.is_silent for each in workers)
    return [*in_order[: min(silent, _MOST_NAMED)], *in_order[silent:]][:MOST_SHOWN]


def _one_line(words: str) -> str:
    return visible(words).replace("\n", "\\n").replace("\t", "\\t")
