"""Session step, the front: opens sessions on workers, steps in them, and keeps their tactics.

It has no state of its own but the requests under way, so any process of the farm serves any session.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

from redis.exceptions import RedisError

from farm.client.states import State, Step
from farm.errors import QueueFull, ServerDown, UnknownRun, UsageError
from farm.log import logger
from farm.redis_client import client_of
from farm.sessions import wire
from farm.sessions.states import state_id

#: A request that no worker has begun after this time is refused: there is no room.
ROOM_SECONDS = 20.0
#: A request is given to another worker at most so often.
_TURNS = 3
#: Seconds besides the tactics' limits, for opening a session and making a state again.
_SPARE_SECONDS = 120.0
_LOOK_SECONDS = 1
#: Redis must answer within this time; an answer is waited for in turns of a second.
_SOCKET_SECONDS = 5.0

_log = logger(__name__)


class NotOpened(UsageError):
    """A session's program cannot be opened; `messages` are Lean's errors."""

    def __init__(self, words: str, messages: Sequence[str] = ()) -> None:
        super().__init__("; ".join([words, *messages[:3]]))
        self.messages = list(messages)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A session as it is kept for an hour: the text that it was opened with, its roots and its owner."""

    id: str
    owner: str
    environment: str
    program: str
    item: Mapping[str, str]
    roots: tuple[State, ...]


@dataclass(slots=True)
class _Pending:
    """A request under way."""

    asked: wire.Asked
    future: Future[wire.Answered]
    until: float
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
        self, program: str, environment: str, *, owner: str = "", item: Mapping[str, str] | None = None
    ) -> Kept:
        """Open a session on a program, whose sorries are the first states. Raises NotOpened."""
        session = secrets.token_hex(12)
        fields = {
            "owner": owner,
            "environment": environment,
            "program": program,
            "item": json.dumps(dict(item or {})),
        }
        with self._client.pipeline(transaction=False) as pipeline:  # no key is without an end
            pipeline.hset(wire.kept(session), mapping=dict[Any, Any](fields))
            pipeline.expire(wire.kept(session), wire.KEPT_SECONDS)
            self._kept(pipeline.execute)
        answer = self._asked(session, environment, wire.OPEN, _SPARE_SECONDS)
        if "refused" in answer:
            if not self._kept(lambda: self._client.delete(wire.kept(session))):
                raise ServerDown("Redis lost the session while it was opened; try again")
            raise NotOpened(answer["refused"], answer.get("messages", []))
        roots = [
            State(
                id=state_id(program, environment, number, ()),
                root=number,
                tactics=(),
                goals=tuple(each["goals"]),
                line=each["line"],
                column=each["column"],
                is_term=each["is_term"],
            )
            for number, each in enumerate(answer.get("roots", []))
        ]
        self._keep_states(session, roots)
        self._kept(lambda: self._client.hset(wire.kept(session), "roots", json.dumps([r.id for r in roots])))
        return Kept(
            id=session,
            owner=owner,
            environment=environment,
            program=program,
            item=item or {},
            roots=tuple(roots),
        )

    def session(self, session: str, owner: str = "") -> Kept:
        """Return a session that is kept. Raises UnknownRun."""
        found = self._kept(lambda: self._client.hgetall(wire.kept(session)))
        said = {key.decode(): value.decode("utf-8", "surrogatepass") for key, value in found.items()}
        if said.get("owner") != owner or "roots" not in said:
            raise UnknownRun(
                f"no session has the id {session[:64]!r}; sessions are kept for an hour after their last use"
            )
        states = self._states(session, json.loads(said["roots"]))
        return Kept(
            id=session,
            owner=owner,
            environment=said["environment"],
            program=said["program"],
            item=json.loads(said["item"]),
            roots=tuple(states),
        )

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
        *,
        seconds: float = wire.USUAL_SECONDS,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[list[Step]]:
        """Try tactics on states, each of which is given by its id; return the outcomes of each list.

        `seconds` of wall time and `heartbeats` limit each tactic; with `first_success` a list ends with its
        first tactic that does not fail.
        """
        _require_possible(attempts, seconds)
        before = self._states(kept.id, [state for state, _ in attempts])
        asked: list[wire.Attempt] = [
            {"root": state.root, "path": list(state.tactics), "tactics": list(tactics)}
            for state, (_, tactics) in zip(before, attempts, strict=True)
        ]
        _require_short(asked)
        count = sum(len(each["tactics"]) for each in asked)
        self._count(kept.id, count)
        answer = self._asked(
            kept.id,
            kept.environment,
            wire.STEP,
            _SPARE_SECONDS + seconds * (count + sum(len(each["path"]) for each in asked)),
            attempts=asked,
            seconds=seconds,
            heartbeats=heartbeats,
            first_success=first_success,
        )
        if "refused" in answer:
            self.session(kept.id, kept.owner)  # Redis may have lost it meanwhile
            raise ServerDown(f"the session cannot be opened again: {answer['refused']}; try again")
        found, new = [], []
        for state, one, tried in zip(before, asked, answer.get("tried", []), strict=True):
            steps = [_step(kept, state, *each) for each in zip(one["tactics"], tried, strict=True)]
            found.append([each for each, _ in steps])
            new += [reached for _, reached in steps if reached is not None]
        self._keep_states(kept.id, new)
        return found

    def end(self, kept: Kept) -> None:
        """End a session's processes, and forget it."""
        worker = self._kept(lambda: self._client.hget(wire.kept(kept.id), "worker"))
        self._kept(lambda: self._client.delete(wire.kept(kept.id), wire.states(kept.id)))
        if worker:
            asked = self._request(kept.id, kept.environment, wire.CLOSE)
            self._kept(lambda: self._client.rpush(wire.of_worker(worker.decode()), json.dumps(asked)))

    # Redis

    def _kept(self, command: Callable[[], Any]) -> Any:
        try:
            return command()
        except (RedisError, OSError) as error:
            raise ServerDown(f"Redis does not answer: {error}; sessions wait until it does") from error

    def _keep_states(self, session: str, states: Sequence[State]) -> None:
        fields = {
            each.id: json.dumps([each.root, each.tactics, each.goals, each.line, each.column, each.is_term])
            for each in states
        }
        key = wire.states(session)
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.hincrby(wire.kept(session), "characters", sum(map(len, fields.values())))
            if fields:
                pipeline.hset(key, mapping=dict[Any, Any](fields))
            pipeline.expire(key, wire.KEPT_SECONDS)
            pipeline.expire(wire.kept(session), wire.KEPT_SECONDS)
            self._kept(pipeline.execute)

    def _states(self, session: str, ids: Sequence[str]) -> list[State]:
        found = cast("list[bytes | None]", self._kept(lambda: self._client.hmget(wire.states(session), ids)))
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

    def _count(self, session: str, tactics: int) -> None:
        tried = cast("int", self._kept(lambda: self._client.hincrby(wire.kept(session), "steps", tactics)))
        if tried > wire.MOST_STEPS:
            raise UsageError(f"a session tries at most {wire.MOST_STEPS} tactics; open another one")
        kept = self._kept(lambda: self._client.hget(wire.kept(session), "characters"))
        if int(kept or 0) > wire.MOST_KEPT_CHARACTERS:
            raise UsageError(
                f"a session keeps at most {wire.MOST_KEPT_CHARACTERS} characters of states; open another one"
            )

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
        self, session: str, environment: str, do: str, wait_seconds: float, **more: object
    ) -> wire.Answered:
        """Send a request and wait for its answer."""
        asked = cast("wire.Asked", {**self._request(session, environment, do), **more})
        pending = _Pending(asked, Future(), time.monotonic() + wait_seconds)
        with self._lock:
            self._pending[asked["id"]] = pending
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="sessions", daemon=True)
                self._thread.start()
        try:
            self._send(pending)
            answer = pending.future.result()
        finally:
            with self._lock:
                self._pending.pop(asked["id"], None)
        if "failed" in answer:
            raise ServerDown(f"the session's worker failed: {answer['failed']}; try again")
        return answer

    def _send(self, pending: _Pending) -> None:
        """Put a request on the list of the worker that has the session, if it lives, else of any."""
        asked = pending.asked
        found = cast(
            "bytes | None", self._kept(lambda: self._client.hget(wire.kept(asked["session"]), "worker"))
        )
        worker = found.decode() if found else ""
        lives = bool(worker) and bool(self._kept(lambda: self._client.exists(wire.alive(worker))))
        pending.where = wire.of_worker(worker) if lives else wire.of_environment(asked["environment"])
        pending.worker, pending.waits_since = worker if lives else "", time.monotonic()
        self._kept(lambda: self._client.rpush(pending.where, json.dumps(asked)))

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
        elif not pending.future.done():
            pending.future.set_result(answer)

    def _look_after(self) -> None:
        """Send requests of ended workers to others, and refuse those for which there is no room."""
        now = time.monotonic()
        with self._lock:
            waiting = list(self._pending.values())
        for each in waiting:
            if each.future.done():
                continue
            if now > each.until:
                each.future.set_exception(ServerDown("no worker answered in time; try again"))
            elif each.worker and not self._client.exists(wire.alive(each.worker)):
                self._send_again(each)
            elif not each.worker and now - each.waits_since > ROOM_SECONDS:
                self._client.lrem(each.where, 0, json.dumps(each.asked))
                words = "no worker has room for a session now; try again later"
                each.future.set_exception(QueueFull(words))

    def _send_again(self, pending: _Pending) -> None:
        """Send a request to another worker: the one that had it has ended."""
        if pending.turns >= _TURNS:
            pending.future.set_exception(ServerDown("the session's workers ended one after the other"))
            return
        pending.turns += 1
        self._client.lrem(pending.where, 0, json.dumps(pending.asked))
        self._send(pending)

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            waiting = list(self._pending.values())
        for each in waiting:
            with contextlib.suppress(Exception):  # it was answered a moment ago
                each.future.set_exception(error)


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
            raise UsageError(f"a state has at most {wire.MOST_DEPTH} tactics")
        if sum(map(len, each["path"])) + max(map(len, each["tactics"])) > wire.MOST_PATH_CHARACTERS:
            raise UsageError(
                f"the tactics of a state have at most {wire.MOST_PATH_CHARACTERS} characters together"
            )


def _step(kept: Kept, before: State, tactic: str, tried: wire.Tried) -> tuple[Step, State | None]:
    """Return the outcome of a tactic, and the state that it led to."""
    reached = None
    if tried["outcome"] in ("goals", "no_goals"):
        path = (*before.tactics, tactic)
        reached = State(
            id=state_id(kept.program, kept.environment, before.root, path),
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
