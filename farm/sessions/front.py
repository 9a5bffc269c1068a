"""Session step, the front: opens sessions on workers, steps in them, and keeps their tactics.

It has no state of its own but the requests under way, so any process of the farm serves any session.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from queue import SimpleQueue
from typing import Any, cast

from redis.client import Pipeline
from redis.exceptions import RedisError

from farm.client.states import State, Step
from farm.errors import QueueFull, ServerDown, UnknownRun, UsageError
from farm.log import logger
from farm.redis_client import client_of, expiring
from farm.sessions import wire
from farm.sessions.states import digest_of, state_id

#: A request that no worker has begun after this time is refused: there is no room.
ROOM_SECONDS = 20.0
#: A request is given to another worker at most so often.
_TURNS = 3
#: Seconds besides the tactics' limits, for opening a session and making a state again.
_SPARE_SECONDS = 120.0
#: A worker ends a call after its limit, and then may be making one state again.
_CALL_SECONDS = 1.5 * wire.MOST_CALL_SECONDS
_LOOK_SECONDS = 1
#: Redis must answer within this time; an answer is waited for in turns of a second.
_SOCKET_SECONDS = 5.0

_log = logger(__name__)


class NotOpened(UsageError):
    """A session's program cannot be opened; `messages` are Lean's errors."""

    def __init__(self, words: str, messages: Sequence[str] = ()) -> None:
        super().__init__(words)
        self.messages = list(messages)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A session that is kept for an hour after its last use; `digest` is that of its program."""

    id: str
    environment: str
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The origin of a session: its program, the item of the client, and the states at the sorries."""

    program: str
    item: Mapping[str, Any]
    roots: tuple[State, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepOptions:
    """Limits of each tactic: wall seconds, and Lean's heartbeats, None for those of the program.

    With `first_success` a list ends with its first tactic that does not fail.
    """

    seconds: float = wire.USUAL_SECONDS
    heartbeats: int | None = None
    first_success: bool = False


USUAL = StepOptions()


@dataclass(slots=True)
class _Pending:
    """A request under way."""

    asked: wire.Asked
    until: float
    answers: SimpleQueue[wire.Answered | Exception] = field(default_factory=SimpleQueue)
    known: set[int] = field(default_factory=set)
    waits_since: float = field(default_factory=time.monotonic)
    where: str = ""
    worker: str = ""
    turns: int = 1


class Front:
    """Asks workers, over Redis; thread-safe. Close it at the end.

    Its methods raise ServerDown when Redis does not answer, QueueFull when no worker has room, and UnknownRun
    for a session or state that is not kept (any more).
    """

    def __init__(self, broker_url: str) -> None:
        self._url = broker_url
        self._client = client_of(broker_url, answer_seconds=_SOCKET_SECONDS)
        self._answers = f"farm:sessions:answers:{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """Give up all requests under way, and end the thread that listens."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(2 * _LOOK_SECONDS)

    # Calls

    def open(
        self, program: str, environment: str, *, owner: str = "", item: Mapping[str, Any] | None = None
    ) -> tuple[Kept, tuple[State, ...]]:
        """Open a session on a program; return it and the states at the sorries. Raises NotOpened."""
        session = secrets.token_hex(12)
        kept = Kept(id=session, environment=environment, digest=digest_of(program, environment))
        fields = {
            "owner": owner,
            "environment": environment,
            "program": program,
            "item": json.dumps(dict(item or {})),
        }
        self._keep_fields(session, fields)
        (answer,) = self._asked(session, environment, wire.OPEN, _SPARE_SECONDS)
        if "refused" in answer:
            if not self._kept(lambda: self._client.delete(wire.kept(session))):
                raise ServerDown("Redis lost the session while it was opened; try again")
            raise NotOpened(answer["refused"], answer.get("messages", []))
        roots = _roots(kept, answer.get("roots", []))
        if item and item.get("formal_statement"):  # others are the dataset's own, above the proof
            roots = [max(roots, key=lambda each: (each.line, each.column))]
        self._keep_states(session, roots)
        opened = {"roots": json.dumps([each.id for each in roots]), "digest": kept.digest}
        self._keep_fields(session, opened)
        return kept, tuple(roots)

    def session(self, session: str, owner: str = "") -> Kept:
        """Return a session that is kept. Raises UnknownRun."""
        owned, environment, digest = self._fields(session, "owner", "environment", "digest")
        if environment is None or digest is None or owned != owner:  # without a digest it is being opened
            raise _unknown(session)
        return Kept(id=session, environment=environment, digest=digest)

    def source(self, kept: Kept) -> Source:
        """Return the origin of a session. Raises UnknownRun."""
        program, item, roots = self._fields(kept.id, "program", "item", "roots")
        if program is None or item is None or roots is None:
            raise _unknown(kept.id)
        states = self._states(kept.id, json.loads(roots))
        return Source(program=program, item=json.loads(item), roots=tuple(states))

    def state(self, kept: Kept, state: str) -> State:
        """Return a state of a session. Raises UnknownRun."""
        return self.states(kept, [state])[0]

    def states(self, kept: Kept, states: Sequence[str]) -> list[State]:
        """Return states of a session. Raises UnknownRun."""
        return self._states(kept.id, states)

    def step(
        self,
        kept: Kept,
        attempts: Sequence[tuple[str, Sequence[str]]],
        options: StepOptions = USUAL,
    ) -> list[list[Step]]:
        """Try tactics on states, each of which is given by its id; return the outcomes of each list."""
        return [each for _, each in sorted(self.step_by_list(kept, attempts, options))]

    def step_by_list(
        self,
        kept: Kept,
        attempts: Sequence[tuple[str, Sequence[str]]],
        options: StepOptions = USUAL,
    ) -> Iterator[tuple[int, list[Step]]]:
        """Do as `step` does, but yield the number and the outcomes of each list as soon as it ends."""
        _require_possible(attempts, options.seconds)
        before, worker = self._begun(kept.id, [state for state, _ in attempts])
        asked: list[wire.Attempt] = [
            {"root": state.root, "path": list(state.tactics), "tactics": list(tactics)}
            for state, (_, tactics) in zip(before, attempts, strict=True)
        ]
        _require_short(asked)
        count = sum(len(each["tactics"]) for each in asked)
        steps_before = sum(len(each["path"]) for each in asked)
        answers = self._asked(
            kept.id,
            kept.environment,
            wire.STEP,
            _SPARE_SECONDS + min(_CALL_SECONDS, options.seconds * (count + steps_before)),
            worker=worker,
            awaited=len(asked),
            attempts=asked,
            **asdict(options),
        )
        for answer in answers:
            if "refused" in answer:
                if self._fields(kept.id, "digest") == [None]:
                    raise _unknown(kept.id)  # Redis lost it meanwhile
                raise ServerDown(f"the session cannot be opened again: {answer['refused']}; try again")
            number = answer["number"]
            state, tactics = before[number], asked[number]["tactics"]
            steps = [_step(kept, state, *each) for each in zip(tactics, answer["tried"], strict=True)]
            new = [reached for _, reached in steps if reached is not None]
            self._keep_states(kept.id, new, tried=len(tactics))
            yield number, [each for each, _ in steps]

    def end(self, kept: Kept) -> None:
        """End a session's processes, and forget it."""
        worker = self._kept(lambda: self._client.hget(wire.kept(kept.id), "worker"))
        self._kept(lambda: self._client.delete(wire.kept(kept.id), wire.states(kept.id)))
        if worker:
            asked = json.dumps(self._request(kept.id, kept.environment, wire.CLOSE))
            self._push(wire.of_worker(worker.decode()), asked)

    def at_work(self, workers: Sequence[str]) -> wire.Beat:
        """Return the sum of the last beats of living workers."""
        names = [wire.alive(each) for each in workers]
        found = self._kept(lambda: self._client.mget(names)) if names else []
        beats = cast("list[wire.Beat]", [json.loads(each) for each in found if each and each[:1] == b"{"])
        return {
            "sessions": sum(each["sessions"] for each in beats),
            "steps": sum(each["steps"] for each in beats),
            "killed": sum(each["killed"] for each in beats),
        }

    # Redis

    def _kept(self, command: Callable[[], Any]) -> Any:
        with self._reaching():
            return command()

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (RedisError, OSError) as error:
            raise ServerDown(f"Redis does not answer: {error}; sessions wait until it does") from error

    @contextmanager
    def _expiring(self, *keys: str) -> Iterator[Pipeline]:
        """Run the commands of the block, and have their keys expire. Raises ServerDown."""
        with self._reaching(), expiring(self._client, wire.KEPT_SECONDS, *keys) as pipeline:
            yield pipeline

    def _keep_fields(self, session: str, fields: Mapping[str, str]) -> None:
        with self._expiring(wire.kept(session)) as pipeline:
            pipeline.hset(wire.kept(session), mapping=dict[Any, Any](fields))

    def _push(self, requests: str, asked: str) -> None:
        with self._expiring(requests) as pipeline:
            pipeline.rpush(requests, asked)

    def _fields(self, session: str, *names: str) -> list[str | None]:
        """Return fields of a session in Redis."""
        found = cast(
            "list[bytes | None]", self._kept(lambda: self._client.hmget(wire.kept(session), list(names)))
        )
        return [None if each is None else each.decode("utf-8", "surrogatepass") for each in found]

    def _keep_states(self, session: str, states: Sequence[State], *, tried: int = 0) -> None:
        """Store new states, and count the tactics that were tried."""
        fields = {
            each.id: json.dumps([each.root, each.tactics, each.goals, each.line, each.column, each.is_term])
            for each in states
        }
        kept, states_key = wire.kept(session), wire.states(session)
        with self._expiring(kept, states_key) as pipeline:
            pipeline.hincrby(kept, "characters", sum(map(len, fields.values())))
            pipeline.hincrby(kept, "steps", tried)
            if fields:
                pipeline.hset(states_key, mapping=dict[Any, Any](fields))

    def _begun(self, session: str, ids: Sequence[str]) -> tuple[list[State], str]:
        """Return states to try tactics on, and the session's worker. Raises UnknownRun and UsageError."""
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.hmget(wire.states(session), list(ids))
            pipeline.hmget(wire.kept(session), ["worker", "steps", "characters"])
            found, (worker, steps, characters) = self._kept(pipeline.execute)
        if int(steps or 0) >= wire.MOST_STEPS:
            raise UsageError(f"a session tries at most {wire.MOST_STEPS} tactics; open another one")
        if int(characters or 0) > wire.MOST_KEPT_CHARACTERS:
            raise UsageError(
                f"a session keeps at most {wire.MOST_KEPT_CHARACTERS} characters of states; open another one"
            )
        return _read(ids, found), (worker or b"").decode()

    def _states(self, session: str, ids: Sequence[str]) -> list[State]:
        return _read(ids, self._kept(lambda: self._client.hmget(wire.states(session), list(ids))))

    # Requests

    def _request(self, session: str, environment: str, do: str) -> wire.Asked:
        return {
            "id": secrets.token_hex(8),
            "answers": self._answers,
            "session": session,
            "environment": environment,
            "do": do,
        }

    def _asked(
        self,
        session: str,
        environment: str,
        do: str,
        wait_seconds: float,
        *,
        worker: str = "",
        awaited: int = 1,
        **more: object,
    ) -> Iterator[wire.Answered]:
        """Send a request, to the worker that has the session if one has it, and yield the awaited answers."""
        asked = cast("wire.Asked", {**self._request(session, environment, do), **more})
        pending = _Pending(asked, time.monotonic() + wait_seconds)
        with self._lock:
            self._pending[asked["id"]] = pending
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="sessions", daemon=True)
                self._thread.start()
        try:
            self._send(pending, worker)
            for _ in range(awaited):
                answer = pending.answers.get()
                if isinstance(answer, Exception):
                    raise answer
                if "failed" in answer:
                    raise ServerDown(f"the session's worker failed: {answer['failed']}; try again")
                yield answer
        finally:
            with self._lock:
                self._pending.pop(asked["id"], None)

    def _send(self, pending: _Pending, worker: str) -> None:
        """Put a request on the list of a worker, if it lives, else of the environment."""
        asked = json.dumps(pending.asked)
        pending.where, pending.worker = wire.of_worker(worker), ""
        pending.waits_since = time.monotonic()
        if worker:
            with self._reaching(), self._client.pipeline(transaction=True) as pipeline:
                pipeline.rpush(pending.where, asked)
                pipeline.expire(pending.where, wire.KEPT_SECONDS)
                pipeline.exists(wire.alive(worker))
                *_, lives = pipeline.execute()
            if lives or not self._kept(lambda: self._client.lrem(pending.where, 0, asked)):
                pending.worker = worker  # it lives, or has taken the request
                return
        pending.where = wire.of_environment(pending.asked["environment"])
        self._push(pending.where, asked)

    def _listen(self) -> None:
        """Take answers, and look after requests that get none."""
        looked = time.monotonic()
        while not self._closing.is_set():
            try:
                found = self._client.blpop([self._answers], timeout=_LOOK_SECONDS)
                if found is not None:
                    self._take(json.loads(found[1]))
                if time.monotonic() - looked > _LOOK_SECONDS:
                    looked = time.monotonic()
                    self._client.expire(self._answers, wire.KEPT_SECONDS)
                    self._look_after()
            except (RedisError, OSError, ServerDown) as error:
                self._give_up(ServerDown(f"Redis does not answer: {error}; try again"))
                self._closing.wait(_LOOK_SECONDS)
            except (ValueError, KeyError, TypeError) as error:
                _log.warning("An answer about a session is malformed: %r", error)
        self._give_up(ServerDown("the process that asked is ending"))

    def _take(self, answer: wire.Answered) -> None:
        with self._lock:
            pending = self._pending.get(answer["id"])
        if pending is None:
            return
        if answer.get("begun"):
            pending.worker = answer["worker"]
        elif answer.get("number") not in pending.known:  # a list may be tried again, by another worker
            pending.known |= {answer["number"]} if "number" in answer else set()
            pending.answers.put(answer)

    def _look_after(self) -> None:
        """Send requests of ended workers to others, and refuse those for which there is no room."""
        now = time.monotonic()
        with self._lock:
            waiting = list(self._pending.values())
        for each in waiting:
            if now > each.until:
                each.answers.put(ServerDown("no worker answered in time; try again"))
            elif each.worker and not self._client.exists(wire.alive(each.worker)):
                self._send_again(each)
            elif not each.worker and now - each.waits_since > ROOM_SECONDS:
                self._client.lrem(each.where, 0, json.dumps(each.asked))
                words = "no worker has room for a session now; try again later"
                each.answers.put(QueueFull(words))

    def _send_again(self, pending: _Pending) -> None:
        """Send a request to another worker: the one that had it has ended."""
        if pending.turns >= _TURNS:
            pending.answers.put(ServerDown("the session's workers ended one after the other"))
            return
        pending.turns += 1
        self._client.lrem(pending.where, 0, json.dumps(pending.asked))
        self._send(pending, "")

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            waiting = list(self._pending.values())
        for each in waiting:
            each.answers.put(error)


def _roots(kept: Kept, found: Sequence[wire.Root]) -> list[State]:
    """Return the states at a program's sorries, as a worker found them."""
    return [
        State(
            id=state_id(kept.digest, number, ()),
            root=number,
            tactics=(),
            goals=tuple(each["goals"]),
            line=each["line"],
            column=each["column"],
            is_term=each["is_term"],
        )
        for number, each in enumerate(found)
    ]


def _unknown(session: str) -> UnknownRun:
    return UnknownRun(
        f"no session has the id {session[:64]!r}; sessions are kept for an hour after their last use"
    )


def _read(ids: Sequence[str], found: Sequence[bytes | None]) -> list[State]:
    """Return states as they are kept. Raises UnknownRun."""
    states = []
    for state, each in zip(ids, found, strict=True):
        if each is None:
            raise UnknownRun(f"the session has no state {state[:64]!r}")
        root, tactics, goals, line, column, is_term = json.loads(each)
        states.append(
            State(
                id=state,
                root=root,
                tactics=tuple(tactics),
                goals=tuple(goals),
                line=line,
                column=column,
                is_term=is_term,
            )
        )
    return states


def _require_possible(attempts: Sequence[tuple[str, Sequence[str]]], seconds: float) -> None:
    """Raise UsageError for a call that no worker would take."""
    if len(attempts) > wire.MOST_LISTS:
        raise UsageError(f"{len(attempts)} lists are too many; send at most {wire.MOST_LISTS} at once")
    if not 0 < seconds <= wire.MOST_SECONDS:
        raise UsageError(f"give each tactic more than 0 s and at most {wire.MOST_SECONDS:g} s")
    for _, tactics in attempts:
        if not 0 < len(tactics) <= wire.MOST_TACTICS:
            raise UsageError(f"try 1 to {wire.MOST_TACTICS} tactics on a state at once, not {len(tactics)}")
        if any(len(each) > wire.MOST_TACTIC_CHARACTERS for each in tactics):
            raise UsageError(f"a tactic has at most {wire.MOST_TACTIC_CHARACTERS} characters")


def _require_short(attempts: Sequence[wire.Attempt]) -> None:
    """Raise UsageError for states that would have too many tactics, or too long ones."""
    for each in attempts:
        if len(each["path"]) >= wire.MOST_DEPTH:
            raise UsageError(f"a state has at most {wire.MOST_DEPTH} tactics; go on from an earlier state")
        if sum(map(len, each["path"])) + max(map(len, each["tactics"])) > wire.MOST_PATH_CHARACTERS:
            raise UsageError(
                f"the tactics of a state have at most {wire.MOST_PATH_CHARACTERS} characters in all, and "
                "these would make more; go on from an earlier state"
            )


def _step(kept: Kept, before: State, tactic: str, tried: wire.Tried) -> tuple[Step, State | None]:
    """Return the outcome of a tactic, and the state that it led to."""
    reached = None
    if tried["outcome"] in ("goals", "no_goals"):
        path = (*before.tactics, tactic)
        reached = State(
            id=state_id(kept.digest, before.root, path),
            root=before.root,
            tactics=path,
            goals=tuple(tried["goals"]),
        )
    step = Step(
        tactic=tactic,
        outcome=tried["outcome"],
        state=None if reached is None else reached.id,
        goals=tuple(tried["goals"]),
        messages=tuple(tried["messages"]),
        message=tried["message"],
        cpu_ms=tried["cpu_ms"],
    )
    return step, reached
