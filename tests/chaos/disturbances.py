"""What is done to a farm at work, one thing at a time; each is over, and the farm whole, when it returns."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType

import redis

from tests.chaos import facts
from tests.chaos.aftermath import own_groups
from tests.chaos.facts import LEASE_SECONDS
from tests.chaos.field import Field, Ground
from tests.chaos.lines import entries, write
from tests.chaos.workers import Worker
from tests.processes import eventually, family

_BIG = 20_000
#: How long a worker that was told to end may take: what it holds may take its whole time limit.
_END_SECONDS = 60.0


def kill_worker(field: Ground) -> str:
    worker = field.some_worker()
    worker.signal(signal.SIGKILL)
    return f"{worker.name}, process {worker.pid}"


def kill_lean(field: Ground) -> str:
    """Kill a Lean from outside; that must never be a verdict of the proof that it was at."""
    worker = field.some_worker()
    for lean in field.chance.sample(leans := worker.leans(), len(leans)):
        with suppress(ProcessLookupError):
            os.kill(lean.pid, signal.SIGKILL)
            return f"process {lean.pid} of {worker.name}, one of {len(leans)}"
    return f"none: {worker.name} has no Lean now"


def kill_holder(field: Ground) -> str:
    """Kill a process that holds states of proofs, runs a tactic, or is what those were forked from."""
    worker = field.some_worker()
    forks = [each for each in family(worker.pid) if "libleanshared" in each.command]
    for fork in field.chance.sample(forks, len(forks)):
        with suppress(ProcessLookupError):
            os.kill(fork.pid, signal.SIGKILL)
            return f"process {fork.pid} of {worker.name}, one of {len(forks)}"
    return f"none: {worker.name} has no Lean now"


def stop_worker(field: Ground) -> str:
    """Stop a worker until its leases are over and somebody else has taken what it held, and let it go on."""
    worker = field.some_worker()
    seconds = field.chance.uniform(1.2, 2.2) * LEASE_SECONDS
    worker.signal(signal.SIGSTOP)
    try:
        field.last(seconds)
    finally:
        worker.signal(signal.SIGCONT)
    return f"{worker.name} for {seconds:.1f} s"


def kill_service(field: Ground) -> str:
    """Kill the service, which begins anew; its clients ask again."""
    field.service.signal(signal.SIGKILL)
    return _begun_anew(field)


def end_service(field: Ground) -> str:
    """Tell the service to end while its clients wait, and begin it anew."""
    field.service.signal(signal.SIGTERM)
    return _begun_anew(field)


def stop_service(field: Ground) -> str:
    """Stop the service, and let it go on."""
    seconds = field.chance.uniform(1.0, 4.0)
    field.service.signal(signal.SIGSTOP)
    try:
        field.last(seconds)
    finally:
        field.service.signal(signal.SIGCONT)
    return f"for {seconds:.1f} s"


def _begun_anew(field: Ground) -> str:
    ending, begun = field.service.pid, time.monotonic()
    eventually(lambda: field.service.pid != ending and field.service.serving, seconds=_END_SECONDS)
    return f"process {ending}, for {time.monotonic() - begun:.1f} s"


def restart_redis(field: Ground) -> str:
    """End Redis, which keeps nothing, and start it again."""
    how = field.chance.choice([signal.SIGTERM, signal.SIGKILL])
    field.servers.valkey.end_by(how)
    field.servers.start_valkey()
    return how.name


def flush_redis(field: Ground) -> str:
    with redis.Redis.from_url(field.servers.redis_url) as client:
        keys = client.info("keyspace")
        client.flushall()
    return f"keys: {sum(each['keys'] for each in keys.values())}"


def _restart_postgres(field: Ground, how: signal.Signals) -> str:
    field.servers.postgres.end_by(how)
    field.last(field.chance.uniform(0.0, 1.5))
    field.servers.start_postgres()
    return how.name


def restart_postgres(field: Ground) -> str:
    """End PostgreSQL in order, connections and all, and start it again."""
    return _restart_postgres(field, signal.SIGINT)


def crash_postgres(field: Ground) -> str:
    """End PostgreSQL at once, as by a loss of power, and start it again."""
    return _restart_postgres(field, signal.SIGQUIT)


def kill_backend(field: Ground) -> str:
    """Kill the process behind a connection, after which PostgreSQL ends all of them and recovers."""
    backends = field.facts.backends()
    if not backends:
        return "none: nobody is connected"
    backend = field.chance.choice(backends)
    with suppress(ProcessLookupError):
        os.kill(backend, signal.SIGKILL)
    return f"process {backend}"


def end_connections(field: Ground) -> str:
    return f"{field.facts.end_connections()} connections"


def kill_loading(field: Field) -> str:
    """Kill who submits another, larger manifest while its lines are on their way: all or nothing is there."""
    field.facts.know_unserved()
    name = f"big{len(field.journal.disturbances)}"
    manifest = write(field.folder / f"{name}.jsonl", entries(_BIG, seed=field.chance.randrange(2**32)))
    submit = field.start(name, facts.submit_unserved(manifest))
    eventually(lambda: field.facts.loading() or submit.status is not None, seconds=60)
    field.last(field.chance.uniform(0.0, 1.0))
    submit.kill()
    eventually(lambda: not field.facts.loading(), seconds=60)
    runs = field.facts.runs(manifest)
    for run in runs:
        if (lines := len(field.facts.lines(run))) != _BIG:
            field.journal.complain(
                f"a submitter killed at its load left {lines} of {_BIG} lines of run {run}"
            )
    return f"its run is {'whole' if runs else 'not there'}"


def kill_submit(field: Field) -> str:
    """Kill who waits for the verdicts, and come back with the very same command."""
    status = field.submitter.status
    field.submitter.kill()
    field.come_back()
    return f"had ended with {status}" if status is not None else "while it waited"


def fill_disk(field: Ground) -> str:
    """Fill a worker's disk for some seconds."""
    worker = field.some_worker()
    seconds = field.chance.uniform(2.0, 4.0)
    with worker.disk.full():
        field.last(seconds)
    return f"that of {worker.name} for {seconds:.1f} s"


def kill_on_full_disk(field: Ground) -> str:
    """Kill a worker whose disk is full, so that it has to begin anew on such a disk."""
    worker = field.some_worker()
    begun = len(worker.lives)
    with worker.disk.full():
        worker.signal(signal.SIGKILL)
        eventually(lambda: len(worker.lives) > begun, seconds=60)
        field.last(field.chance.uniform(0.0, 4.0))
    return f"that of {worker.name}"


def export_twice(field: Field) -> str:
    """Write what is known into the manifest twice at the same time."""
    words = facts.export(field.run)
    both = [field.start(f"export{number}", words) for number in (1, 2)]
    statuses = [each.ended() for each in both]
    for each, status in zip(both, statuses, strict=True):
        if status != 0:
            field.journal.complain(f"an export beside another ended with {status}: {each.said[-2000:]}")
    return f"exit statuses {statuses}"


def cancel_beside(field: Field) -> str:
    """Have somebody submit some of the same lines, and cancel them: who else waits for them goes on."""
    name = f"beside{len(field.journal.disturbances)}"
    manifest = write(field.folder / f"{name}.jsonl", field.chance.sample(field.lines, len(field.lines) // 5))
    submit = field.start(name, facts.submit_beside(manifest))
    if (status := submit.ended()) != 0:
        field.journal.complain(f"a submit ended with {status}: {submit.said[-2000:]}")
        return "its submit failed"
    field.last(field.chance.uniform(0.0, 1.0))
    (run,) = field.facts.runs(manifest)
    waited = field.facts.waiting(run)
    cancel = field.start(name, facts.cancel(run))
    if (status := cancel.ended()) != 0 or field.facts.waiting(run):
        waits = field.facts.waiting(run)
        field.journal.complain(f"a cancel ended with {status}, {waits} lines wait: {cancel.said[-2000:]}")
    return f"run {run}, of which {waited} lines waited"


def end_worker(field: Ground) -> str:
    """Tell a worker to end; it loses nothing, and leaves with 0."""
    return _end_worker(field, times=1)


def end_worker_twice(field: Ground) -> str:
    """Tell a worker to end, and once more while it does: now at once."""
    return _end_worker(field, times=2)


def end_beginning_worker(field: Ground) -> str:
    """Kill a worker, and tell the one that takes its place to end before it takes any check."""
    worker = field.some_worker()
    begun = len(worker.lives)
    worker.signal(signal.SIGKILL)
    eventually(lambda: len(worker.lives) > begun, seconds=60)
    beginning = worker.process
    field.last(field.chance.uniform(0.5, 4.0))
    worker.signal(signal.SIGTERM)
    eventually(lambda: beginning.poll() is not None, seconds=_END_SECONDS)
    _complain_of_groups(field, worker, beginning.pid)
    return f"{worker.name} ended with {beginning.returncode}"


def _end_worker(field: Ground, *, times: int) -> str:
    worker = field.some_worker()
    ending, begun = worker.process, time.monotonic()
    for _ in range(times):
        worker.signal(signal.SIGTERM)
        field.last(0.3)
    eventually(lambda: ending.poll() is not None, seconds=_END_SECONDS)
    # A second signal can meet a Python that has done all its work and put its own handlers away.
    if ending.returncode not in (0, -signal.SIGTERM)[:times]:
        field.journal.complain(f"{worker.name} ended with {ending.returncode} when it was told to end")
    _complain_of_groups(field, worker, ending.pid)
    return f"{worker.name} after {time.monotonic() - begun:.1f} s"


def _complain_of_groups(field: Ground, worker: Worker, ended: int) -> None:
    if groups := own_groups({ended}):
        left = ", ".join(map(str, groups))
        field.journal.complain(f"{worker.name} ({ended}) was told to end and left control groups: {left}")


#: Every disturbance by the name under which it can be asked for.
DISTURBANCES: Mapping[str, Callable[[Field], str]] = MappingProxyType(
    {
        each.__name__.replace("_", "-"): each
        for each in (
            *(kill_worker, kill_lean, stop_worker),
            *(end_worker, end_worker_twice, end_beginning_worker),
            *(kill_service, end_service, stop_service),
            *(fill_disk, kill_on_full_disk),
            *(restart_redis, flush_redis),
            *(restart_postgres, crash_postgres, kill_backend, end_connections),
            *(kill_loading, kill_submit, export_twice, cancel_beside),
        )
    }
)


def drawn(names: list[str], chance: random.Random) -> Iterator[str]:
    """Yield names for ever in an order of chance, each as often as the others."""
    while True:
        yield from chance.sample(names, len(names))
