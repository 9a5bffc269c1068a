"""Session step, one session from outside: opens it in a cell, has its holders fork, and ends slow tactics."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from farm.judging import causes
from farm.judging.messages import says_heartbeats
from farm.judging.places import at_line
from farm.judging.report import Answer
from farm.lean_text.header import header_end
from farm.limits import Limits
from farm.sessions.states import runnable
from farm_workers.box.clock import Clock, Starved
from farm_workers.box.copy import as_file
from farm_workers.box.supervisor import BoxFailed
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.fork import ImageGone
from farm_workers.images.holding import END, ERROR, LOST, MOST_MESSAGES, SKIPPED, STEP
from farm_workers.images.image import ImageDied, NoImage
from farm_workers.images.images import Images, NotWanted
from farm_workers.images.recipe import Recipe
from farm_workers.images.tactics import MOST_BYTES, MOST_GOALS
from farm_workers.lean.messages import parse
from farm_workers.sessions.lines import Lines, Output, is_readable
from farm_workers.sessions.outcome import (
    CRASHED,
    HEARTBEATS,
    MEMORY,
    TIMEOUT,
    NoSession,
    Outcome,
    RootGoals,
    SessionGone,
    StateKey,
)

#: Seconds in which a session's program must be elaborated.
OPEN_SECONDS = 60.0
#: The most forks that hold states, and MiB of all processes of a session.
MOST_HOLDERS, MOST_MIB = 64, 1024
#: The most processes and threads of a session: a fork has a few threads of Lean's.
_PROCESSES = 8 * MOST_HOLDERS
#: The most roots of a program.
MOST_ROOTS = 1000
#: The most seconds for making a state again: the path to it may work more slowly than before, on purpose.
_PATH_SECONDS = 300.0
#: The most milliseconds of processor time that a fork can report.
_MOST_CPU_MS = 1e12
#: An image may have ended since its last fork; its replacement is tried once.
_TURNS = 2
#: A program with which the first process ends is opened so often: the last time the program is to blame.
_OPENINGS = 3
#: A killed fork is gone after this time, or the session is ended.
_END_SECONDS = 1.0
#: In the place of a tactic's number: the path to the state was tried again.
_PATH = -1
_SPOILED = "the program spoiled the session's answer"
#: The outcomes that a fork may report; anything else was not written by the farm.
_REPORTED = frozenset({"goals", "no_goals", ERROR, SKIPPED})


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLimits:
    """The limits of each tactic: wall seconds, and Lean's heartbeats (None for those of the program)."""

    seconds: float
    heartbeats: int | None = None
    first_success: bool = False


#: Returns why Lean cannot import the header of a program in an environment, "" if it can.
Refusal = Callable[[str, LeanEnvironment], str]


def unexplained(_program: str, _environment: LeanEnvironment) -> str:
    """Return no reason: nobody can ask Lean about a header."""
    return ""


class _Killed(NoSession):
    """The first process of a session ended: it may have been killed from outside."""


class _HolderGone(Exception):
    """A process that held states has ended; its session goes on."""


class _Holder:
    """A process that holds states: their keys in its order, and how many steps it forks for."""

    def __init__(self, given: socket.socket, states: list[StateKey]) -> None:
        self.socket, self.states = given, states
        self.users = 0

    def order(self, what: bytes, number: int, files: Sequence[int] = ()) -> None:
        """Send an order. Raises OSError if the process has ended."""
        socket.send_fds(self.socket, [what + b"%08d" % number], list(files))


class Session:
    """One session; thread-safe. It lives until it is closed, and dies with its image.

    Nothing that its processes say is believed: they run the code of tactics.
    """

    def __init__(
        self,
        program: str,
        environment: LeanEnvironment,
        images: Images[LeanEnvironment],
        cancelled: Callable[[], bool],
        *,
        memory_mib: int = MOST_MIB,
        refusal: Refusal = unexplained,
    ) -> None:
        """Elaborate the program, whose sorries are the roots. Raises NoSession and BoxFailed."""
        self._lock, self._numbers = threading.Lock(), 0
        self._refusal = refusal
        self._most_kib, self._is_gone = memory_mib << 10, False
        self._places: dict[StateKey, tuple[_Holder, int]] = {}
        self._holders: OrderedDict[_Holder, None] = OrderedDict()
        self._files = contextlib.ExitStack()
        limits = Limits(
            wall_seconds=math.inf,
            cpu_seconds=math.inf,
            memory_mib=memory_mib,
            processes=_PROCESSES,
            output_kib=1024,
        )
        key = environment, Recipe(header=program[: header_end(program)] + "\n")
        for turn in range(_OPENINGS):
            with contextlib.ExitStack() as undo:
                undo.callback(self._files.close)
                ours = self._begun(key, program, images, limits, cancelled)
                try:
                    self.roots = self._opened(ours, program)
                except _Killed as killed:
                    if turn == _OPENINGS - 1:
                        raise self._not_its_own_end() or killed from None
                    continue
                undo.pop_all()
                break
        self._root = _Holder(ours, [(number, ()) for number in range(len(self.roots))])
        for number in range(len(self.roots)):
            self._places[number, ()] = self._root, number

    def _begun(
        self,
        key: tuple[LeanEnvironment, Recipe],
        program: str,
        images: Images[LeanEnvironment],
        limits: Limits,
        cancelled: Callable[[], bool],
    ) -> socket.socket:
        """Fork the session's first process; return the socket to it."""
        try:
            for _ in range(_TURNS):
                with images.lease(*key, cancelled) as image:
                    ours, theirs = socket.socketpair()
                    self._files.enter_context(ours)
                    try:
                        with theirs:
                            self._fork = image.session({"program": program}, limits, theirs)
                    except ImageGone:
                        images.replace(*key, image)
                        continue
                    self._files.callback(self._fork.close)
                    self._fork.go()
                    return ours
        except ImageDied as error:
            raise BoxFailed(f"no image for the session: {error}") from error
        except NoImage as error:
            refused = self._refusal(program, key[0])
            raise NoSession(refused or f"this Lean has no sessions: {error}") from error
        except NotWanted:
            raise BoxFailed("the worker ended while it opened a session") from None
        raise BoxFailed("an image exited, and so did its replacement")

    def _not_its_own_end(self) -> BoxFailed | None:
        """Return the failure of the farm that ended the first process, None if it may have ended itself."""
        run = self._fork.ended()
        if run.lacked is None and run.signal != signal.SIGKILL:
            return None
        return BoxFailed(f"no session could be opened: {run.lacked or 'its process was killed from outside'}")

    def _opened(self, ours: socket.socket, program: str) -> list[RootGoals]:
        output = Output([self._fork.stdout, self._fork.stderr])
        answer = self._first_answer(Lines(ours, output))
        if answer is None:
            limit = self._fork.breach()
            if limit is None:
                raise _Killed("Lean ended while it read the program (a crash)")
            raise NoSession(f"Lean ended while it read the program ({limit})")
        if "error" in answer:
            raise NoSession(str(answer["error"])[:MOST_BYTES])
        if not answer.get("accepted"):
            raise _refused(parse(output.rest(), b"", program=program, mark=""))
        listed = _listed(answer.get("roots"))
        if not listed:
            raise NoSession("the program has no sorry to begin at")
        if len(listed) > MOST_ROOTS:
            raise NoSession(f"the program has more than {MOST_ROOTS} sorries")
        lines = program.count("\n") + 1
        try:
            return [_root(each, lines) for each in listed]
        except ValueError as error:
            raise NoSession(f"{_SPOILED}: {error}") from error

    def _first_answer(self, lines: Lines) -> dict[str, object] | None:
        try:
            return lines.next(self._time(OPEN_SECONDS))
        except TimeoutError:
            raise NoSession(f"the program is not elaborated within {OPEN_SECONDS:g} s") from None
        except Starved as error:
            raise BoxFailed(f"no session could be opened: {error}") from None
        except (ValueError, OSError) as error:
            raise NoSession(f"{_SPOILED}: {error}") from error

    # Steps

    def step(self, key: StateKey, tactics: Sequence[str], limits: StepLimits) -> Iterator[Outcome]:
        """Try tactics on a state; yield their outcomes in order, each as it comes.

        A state that no process holds any more is made again from its tactics. Raises SessionGone when the
        session's processes have ended, and LookupError for a state that cannot be made again.
        """
        done, succeeded, retried = 0, False, set[int]()
        while done < len(tactics):
            if succeeded and limits.first_success:
                yield Outcome(outcome=SKIPPED)
                done += 1
                continue
            try:
                for outcome in self._run(key, tactics[done:], limits):
                    if outcome.outcome == CRASHED and done not in retried:
                        retried.add(done)  # it may have been killed from outside
                        break
                    succeeded |= outcome.has_state
                    done += 1
                    yield outcome
            except _HolderGone:
                continue  # a state above it is held, at least the root
            except LookupError:
                if _PATH in retried:
                    raise
                retried.add(_PATH)
        self._make_room()

    def _run(self, key: StateKey, tactics: Sequence[str], limits: StepLimits) -> Iterator[Outcome]:
        """Try tactics in one fork, until it has tried all, or was ended with the last one yielded."""
        with self._used(key) as (holder, index, path):
            asked = {
                "state": index,
                "path": list(map(runnable, path)),
                "tactics": list(map(runnable, tactics)),
                "heartbeats": limits.heartbeats,
                "first_success": limits.first_success,
            }
            ours, theirs = socket.socketpair()
            number, keeps, leads = self._next_number(), False, True
            try:
                with theirs, as_file(json.dumps(asked).encode()) as request:
                    self._order(holder, STEP, number, [theirs.fileno(), request])
                keeps = yield from self._watched(ours, holder, number, key, len(path), tactics, limits)
            except LookupError:
                leads = False
                raise
            finally:
                if not keeps:  # a tactic may still run in it
                    with contextlib.suppress(_HolderGone, SessionGone):
                        self._order(holder, END, number)
                    ours.close()
                if not leads:
                    self._distrust(holder)

    def _distrust(self, holder: _Holder) -> None:
        """Forget a holder whose states cannot be reached, unless it is the session's first process."""
        if holder is not self._root:
            with self._lock:
                self._forget([holder])
            holder.socket.close()

    def _order(self, holder: _Holder, what: bytes, number: int, files: Sequence[int] = ()) -> None:
        """Send an order to a holder. Raises SessionGone, and `_HolderGone` if others are left."""
        try:
            holder.order(what, number, files)
        except OSError as error:
            if holder is self._root:
                self._is_gone = True
                raise SessionGone("the processes of the session have ended") from error
            with self._lock:
                self._forget([holder])
            holder.socket.close()
            raise _HolderGone from error

    def _watched(
        self,
        ours: socket.socket,
        holder: _Holder,
        number: int,
        key: StateKey,
        before: int,
        tactics: Sequence[str],
        limits: StepLimits,
    ) -> Generator[Outcome, None, bool]:
        """Yield the outcomes of a fork's tactics; return whether it goes on as a holder of new states."""
        lines, (root, above) = Lines(ours), key
        states = [(root, above[:kept]) for kept in range(len(above) - before + 1, len(above) + 1)]
        try:
            self._await_state(lines, min((before + 1) * limits.seconds, _PATH_SECONDS))
        except Starved as error:
            yield self._starved(error, lines, holder, number)
            return False
        except TimeoutError:
            self._ended(lines, holder, number)
            raise LookupError("the state cannot be made again within its limits") from None
        for tactic in tactics:
            try:
                found = lines.next(self._time(limits.seconds))
            except Starved as error:
                yield self._starved(error, lines, holder, number)
                return False
            except TimeoutError:
                self._ended(lines, holder, number)
                said = f"the tactic did not end within {limits.seconds:g} s"
                yield Outcome(outcome=TIMEOUT, message=said)
                return False
            except (ValueError, OSError):
                self._ended(lines, holder, number)
                yield Outcome(outcome=CRASHED, message="the tactic spoiled the answer of its process")
                return False
            if found is None:
                yield self._crashed()
                return False
            outcome = _outcome(found)
            if outcome.has_state:
                states.append((root, (*above, tactic)))
            yield outcome
        if states:
            self._hold(_Holder(ours, states))
        return bool(states)

    def _await_state(self, lines: Lines, seconds: float) -> None:
        """Wait until a fork has reached the state.

        Raises TimeoutError, Starved, LookupError and SessionGone.
        """
        try:
            found = lines.next(self._time(seconds))
        except TimeoutError:
            raise
        except (ValueError, OSError):
            found = None
        if found is None:
            self._require_life()
            raise LookupError("a process ended before it reached the state")
        if found.get("outcome") == LOST:
            raise LookupError(f"the state cannot be made again: {found.get('message')}")

    def _ended(self, lines: Lines, holder: _Holder, number: int) -> None:
        """Have a fork killed by the one that forked it. Raises SessionGone if it does not die."""
        with contextlib.suppress(_HolderGone):  # its forks have ended or will not be used
            self._order(holder, END, number)
        try:
            lines.discard(time.monotonic() + _END_SECONDS)
        except (TimeoutError, OSError):
            self.close()
            raise SessionGone("a fork of the session could not be ended") from None

    def _time(self, seconds: float) -> Callable[[], float]:
        """Return a function for the remaining seconds of a limit, on the clock of the session's processes."""
        return partial(Clock(self._fork.threads, self.cpu_seconds).left, seconds)

    def _starved(self, error: Starved, lines: Lines, holder: _Holder, number: int) -> Outcome:
        """End a fork that got no core, and return the outcome of its tactic. Raises SessionGone."""
        self._ended(lines, holder, number)
        return Outcome(outcome=CRASHED, message=f"the tactic was not tried to its end: {error}")

    def _crashed(self) -> Outcome:
        limit = self._fork.breach()
        self._fork_is_over()
        if limit == "memory":
            return Outcome(outcome=MEMORY, message="the session's memory is used up")
        return Outcome(outcome=CRASHED, message="the process ended while it ran the tactic")

    def _fork_is_over(self) -> bool:
        return is_readable(self._fork.over, 0)

    def _require_life(self) -> None:
        if self._fork_is_over():
            raise SessionGone("the processes of the session have ended")

    @property
    def is_over(self) -> bool:
        """Whether its processes have ended."""
        return self._is_gone or self._fork_is_over()

    def _next_number(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    # Holders

    @contextlib.contextmanager
    def _used(self, key: StateKey) -> Iterator[tuple[_Holder, int, list[str]]]:
        """Give the holder of the nearest state, its number there, and the tactics from there."""
        root, tactics = key
        with self._lock:
            if self._is_gone:
                raise SessionGone("the session is closed, or its processes have ended")
            for kept in range(len(tactics), -1, -1):
                place = self._places.get((root, tactics[:kept]))
                if place is not None:
                    break
            else:
                raise LookupError(f"the session has no root {root}")
            holder, index = place
            holder.users += 1
            if holder in self._holders:
                self._holders.move_to_end(holder)
        try:
            yield holder, index, list(tactics[kept:])
        finally:
            with self._lock:
                holder.users -= 1

    def _hold(self, holder: _Holder) -> None:
        with self._lock:
            self._holders[holder] = None
            for index, key in enumerate(holder.states):
                self._places.setdefault(key, (holder, index))

    def _make_room(self) -> None:
        """End the holders that were not used longest, while they are too many or too large."""
        with self._lock:
            crowded = len(self._holders) > MOST_HOLDERS
        full = self._fork.usage().memory_kib > self._most_kib // 2
        leaving = []
        with self._lock:
            most = min(MOST_HOLDERS, len(self._holders) // 2 if full else MOST_HOLDERS)
            if crowded or full:
                unused = [each for each in self._holders if not each.users]
                leaving = unused[: max(0, len(self._holders) - most)]
            self._forget(leaving)
        for holder in leaving:
            holder.socket.close()

    def _forget(self, holders: Sequence[_Holder]) -> None:
        """Forget the states that only these hold."""
        for holder in holders:
            self._holders.pop(holder, None)
            for key in holder.states:
                if self._places.get(key, (None, 0))[0] is holder:
                    del self._places[key]

    @property
    def holders(self) -> int:
        """The number of forks that hold states."""
        return len(self._holders)

    def usage_kib(self) -> int:
        """Return the memory of its processes."""
        return self._fork.usage().memory_kib

    def cpu_seconds(self) -> float:
        """Return the processor time of its processes until now."""
        return self._fork.usage().cpu_seconds

    def is_too_large(self) -> bool:
        """Whether its processes exceed its limits of memory and number."""
        return self._fork.breach() is not None

    def close(self) -> None:
        """End all processes of the session."""
        with self._lock:
            self._is_gone = True
            holders = list(self._holders)
            self._holders.clear()
            self._places.clear()
        for holder in holders:
            holder.socket.close()
        self._files.close()


def _refused(answer: Answer) -> NoSession:
    """Return the refusal of a program with errors: it names one, and has them all."""
    found = [each for each in answer.messages if each.severity == "error"]
    if not found:
        return NoSession("the program has errors")
    told = causes.named(found)
    at = at_line(told.line, told.column)
    words = f"the program has errors, the first{at}{causes.counted(found)}: {told.text.strip()[:MOST_BYTES]}"
    return NoSession(words, tuple(f"{each.line}:{each.column}: {each.text}" for each in found))


def _listed(found: object) -> list[dict[str, object]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _texts(found: object, most: int) -> tuple[str, ...]:
    if not isinstance(found, list):
        return ()
    return tuple(each[:MOST_BYTES] for each in found[:most] if isinstance(each, str))


def _root(found: dict[str, object], lines: int) -> RootGoals:
    """Return a root as the first process reported it. Raises ValueError for a place outside the program."""
    line, column = found.get("line"), found.get("column")
    if not (isinstance(line, int) and isinstance(column, int) and 0 < line <= lines and column >= 0):
        raise ValueError("a sorry outside the program")
    return RootGoals(
        line=line,
        column=min(column, sys.maxsize),
        is_term=found.get("is_term") is True,
        goals=_texts(found.get("goals"), MOST_GOALS),
    )


def _outcome(found: dict[str, object]) -> Outcome:
    """Return an outcome as a fork reported it, with nothing in it of another type."""
    said, spent = found.get("outcome"), found.get("cpu_ms")
    if not isinstance(said, str) or said not in _REPORTED:
        return Outcome(outcome=CRASHED, message="the tactic spoiled the answer of its process")
    message = found.get("message", "")
    message = message[:MOST_BYTES] if isinstance(message, str) else ""
    return Outcome(
        outcome=HEARTBEATS if said == ERROR and says_heartbeats(message) else said,
        goals=_texts(found.get("goals"), MOST_GOALS),
        messages=_texts(found.get("messages"), MOST_MESSAGES),
        message=message,
        cpu_ms=float(spent) if isinstance(spent, int | float) and 0 <= spent < _MOST_CPU_MS else 0.0,
    )
