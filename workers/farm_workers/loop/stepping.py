"""The worker's sessions: takes requests to step in proofs from Redis, in turn with checks."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import cast

from redis.exceptions import RedisError

from farm.errors import FarmError
from farm.kinds import Kind
from farm.log import logger
from farm.redis_client import client_of, expiring
from farm.runs.stepping import entry_of
from farm.sessions import wire
from farm_workers.box.supervisor import BoxFailed
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.holding import ERROR
from farm_workers.loop.context import Context
from farm_workers.loop.requests import take_all
from farm_workers.metrics import events
from farm_workers.sessions.outcome import CRASHED, TIMEOUT, NoSession, Outcome, SessionGone
from farm_workers.sessions.session import Session, StepLimits
from farm_workers.sessions.sessions import Sessions
from farm_workers.systems.lean.judge import LeanJudge

#: Redis must answer within this time; a request is waited for in turns of a second.
_SOCKET_SECONDS, _WAIT_SECONDS = 5.0, 1
#: An answer that nobody takes is dropped after this time.
_ANSWER_SECONDS = 120
#: A tactic with which the session's processes end is tried so often, each time in newly opened ones.
_TURNS = 2
#: A session is opened without being asked whether its statement can be proved at all, once this time is over.
_OPENING_SECONDS = 90.0
#: In the place of a request: has the thread that takes requests see that the worker stops.
_WAKE = b""

_log = logger(__name__)

_GONE = Outcome(outcome=CRASHED, message="the session's processes ended with this tactic")
_LATE = Outcome(
    outcome=TIMEOUT, message=f"the call took {wire.MOST_CALL_SECONDS:g} s; try fewer tactics at once"
)


class _Call:
    """The limits of one call, besides those of each tactic: its time, and the characters of its answer."""

    def __init__(self) -> None:
        self._until = time.monotonic() + wire.MOST_CALL_SECONDS
        self._left = wire.MOST_ANSWER_CHARACTERS

    @property
    def is_over(self) -> bool:
        """Whether the call's time is over."""
        return time.monotonic() > self._until

    def told(self, outcome: Outcome) -> Outcome:
        """Return an outcome, or a failure in its place once the answer is too long."""
        self._left -= len(outcome.message) + sum(map(len, outcome.goals + outcome.messages))
        if self._left > 0:
            return outcome
        words = f"the answer to the call is longer than {wire.MOST_ANSWER_CHARACTERS} characters"
        return Outcome(outcome=ERROR, message=words, cpu_ms=outcome.cpu_ms)


class Stepping:
    """Serves the requests of sessions to one worker."""

    def __init__(self, context: Context, broker_url: str) -> None:
        self._client = client_of(broker_url, answer_seconds=_SOCKET_SECONDS)
        self._context, self._worker = context, context.name
        self._taken, self._tried_lately = 0, Counter[str]()
        self._stopping, self._has_sessions = threading.Event(), False
        self._free = threading.Semaphore(context.threads.size)
        self._threads = [
            threading.Thread(target=each, name=name, daemon=True)
            for name, each in (("sessions", self._take_all), ("sessions-alive", self._stay))
        ]

    def _judge(self) -> LeanJudge:
        judge = self._context.judges.of(Kind.LEAN)
        assert isinstance(judge, LeanJudge)  # noqa: S101 - that kind's
        return judge

    def _sessions(self) -> Sessions:
        return self._judge().sessions

    def start(self) -> None:
        """Begin, in threads of its own."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further request, and end all sessions."""
        self._stopping.set()
        with contextlib.suppress(RedisError, OSError):  # else it ends after its wait
            own = wire.of_worker(self._worker)
            with expiring(self._client, wire.KEPT_SECONDS, own) as pipeline:
                pipeline.rpush(own, _WAKE)
        for thread in self._threads:
            thread.join(2 * _WAIT_SECONDS)
        try:
            self._client.delete(wire.alive(self._worker), wire.of_worker(self._worker))
        except (RedisError, OSError):
            _log.debug("Redis is away; the worker's name expires there")
        if self._has_sessions:
            self._sessions().close()

    def _stay(self) -> None:
        """Keep the worker's name in Redis, and end idle sessions."""
        while not self._stopping.wait(wire.ALIVE_EACH):
            try:
                self._client.set(wire.alive(self._worker), json.dumps(self._beat()), ex=wire.ALIVE_SECONDS)
                if self._has_sessions:
                    self._sessions().sweep()
            except (RedisError, OSError) as error:
                _log.debug("Redis is away: %s", error)
            except Exception:  # noqa: BLE001 # the thread's edge: else no session would end
                _log.exception("Idle sessions could not be ended")

    def _beat(self) -> wire.Beat:
        lately, self._tried_lately = self._tried_lately, Counter()
        sessions = len(self._sessions()) if self._has_sessions else 0
        events.holding(sessions)
        return {"sessions": sessions, "steps": lately.total(), "killed": lately[TIMEOUT]}

    def _take_all(self) -> None:
        take_all(self._take_one, self._context, self._stopping, "sessions")

    def _take_one(self) -> None:
        """Take a request as soon as a thread is free for it."""
        if not self._free.acquire(timeout=_WAIT_SECONDS):
            return
        begun = False
        try:
            lean = [name for name, each in self._context.fit.items() if isinstance(each, LeanEnvironment)]
            places = [wire.of_worker(self._worker), *map(wire.of_environment, lean)]
            # Redis takes from the first that has one: each is the first in turn, so that none starves.
            first = self._taken % len(places)
            places = places[first:] + places[:first]
            found = cast("tuple[bytes, bytes] | None", self._client.blpop(places, timeout=_WAIT_SECONDS))
            if found is None or found[1] == _WAKE:
                return
            self._taken += 1
            asked = cast("wire.Asked", json.loads(found[1]))
            threading.Thread(target=self._serve, args=(asked,), name="session", daemon=True).start()
            begun = True
        finally:
            if not begun:
                self._free.release()

    def _serve(self, asked: wire.Asked) -> None:
        """Answer one request, in a slot of the worker's."""
        try:
            if asked["do"] == wire.CLOSE:
                if self._has_sessions:
                    self._sessions().end(asked["session"])
                return
            with self._context.threads.take_turn():
                self._answer(asked, {"begun": True})
                answer = self._answered(asked)
            if answer is not None:
                self._answer(asked, answer)
        except (RedisError, OSError) as error:
            _log.warning("An answer about a session could not be sent: %s", error)
        except Exception:  # noqa: BLE001 # the thread's edge: a request without a name for its answer
            _log.exception("A request of a session could not be answered")
        finally:
            self._free.release()
            self._context.calling.set()  # a check may have waited for the slot

    def _answer(self, asked: wire.Asked, answer: dict[str, object]) -> None:
        said = json.dumps({"id": asked["id"], "worker": self._worker, **answer})
        with expiring(self._client, _ANSWER_SECONDS, asked["answers"]) as pipeline:
            pipeline.rpush(asked["answers"], said)

    def _answered(self, asked: wire.Asked) -> dict[str, object] | None:
        """Return the answer to a request, None if it was sent list by list."""
        try:
            if asked["do"] == wire.OPEN:
                return self._opened(asked)
            self._step(asked)
        except NoSession as error:
            return {"refused": str(error), "messages": list(error.messages)}
        except (FarmError, BoxFailed, OSError, SessionGone) as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        except Exception as error:  # noqa: BLE001 # the request's edge: else its client would wait in vain
            _log.exception("A request of a session failed")
            return {"failed": f"{type(error).__name__}: {error}"}
        return None

    def _opened(self, asked: wire.Asked) -> dict[str, object]:
        until = time.monotonic() + _OPENING_SECONDS
        with self._using(asked) as session:
            self._note_worker(asked)
            roots = [asdict(each) for each in session.roots]
        try:
            self._require_provable(asked, until)
        except NoSession:
            self._sessions().end(asked["session"])
            raise
        return {"roots": roots}

    def _require_provable(self, asked: wire.Asked, until: float) -> None:
        """Raise NoSession, with a remedy, if the judge could accept no proof of what a session is on."""
        found = self._client.hmget(wire.kept(asked["session"]), ["item", "program"])
        item, program = cast("list[bytes | None]", found)
        environment = self._context.fit.get(asked["environment"])
        if item is None or program is None or not isinstance(environment, LeanEnvironment):
            return
        why = self._judge().checker.unprovable(
            entry_of(json.loads(item), program.decode("utf-8", "surrogatepass")),
            environment,
            cancelled=lambda: self._stopping.is_set() or time.monotonic() > until,
        )
        if why is not None:
            raise NoSession(f"no proof of it can be accepted: {why}")

    def _step(self, asked: wire.Asked) -> None:
        """Try lists of tactics, and answer with the outcomes of each as it ends."""
        limits = StepLimits(
            seconds=asked["seconds"],
            heartbeats=asked["heartbeats"],
            first_success=asked["first_success"],
        )
        call = _Call()
        for number, attempt in enumerate(asked["attempts"]):
            tried = self._tried(asked, attempt, limits, call)
            outcomes = [each.outcome for each in tried]
            self._tried_lately.update(outcomes)
            events.stepped(asked["environment"], outcomes)
            self._answer(asked, {"number": number, "tried": [asdict(each) for each in tried]})

    def _using(self, asked: wire.Asked) -> AbstractContextManager[Session]:
        environment = self._context.fit.get(asked["environment"])
        if not isinstance(environment, LeanEnvironment):
            raise FarmError(f"this worker does not serve the environment {asked['environment']} any more")
        self._has_sessions = True
        return self._sessions().using(
            asked["session"], environment, lambda: self._program(asked), self._stopping.is_set
        )

    def _program(self, asked: wire.Asked) -> str:
        """Return a session's program, and note that this worker has the session."""
        found = cast("bytes | None", self._client.hget(wire.kept(asked["session"]), "program"))
        if found is None:
            raise NoSession("the session is not kept any more")
        self._note_worker(asked)
        return found.decode("utf-8", "surrogatepass")

    def _note_worker(self, asked: wire.Asked) -> None:
        """Note that this worker has the session; if Redis lost the session, the note expires."""
        session = wire.kept(asked["session"])
        with expiring(self._client, wire.KEPT_SECONDS, session) as pipeline:
            pipeline.hset(session, "worker", self._worker)

    def _tried(
        self, asked: wire.Asked, attempt: wire.Attempt, limits: StepLimits, call: _Call
    ) -> list[Outcome]:
        """Return the outcomes of a list of tactics; a session that ends meanwhile is opened again."""
        outcomes: list[Outcome] = []
        key, tactics = (attempt["root"], tuple(attempt["path"])), attempt["tactics"]
        turns = 0
        while len(outcomes) < len(tactics) and not call.is_over:
            done = len(outcomes)
            try:
                with self._using(asked) as session:
                    for each in session.step(key, tactics[done:], limits):
                        outcomes.append(call.told(each))
                        if call.is_over:
                            break
            except SessionGone:
                turns = turns + 1 if len(outcomes) == done else 1
                if turns == _TURNS:
                    outcomes.append(_GONE)
                    turns = 0
            except LookupError as error:
                lost = Outcome(outcome="lost", message=str(error))
                return [*outcomes, *[lost] * (len(tactics) - len(outcomes))]
        return [*outcomes, *[_LATE] * (len(tactics) - len(outcomes))]
