"""The handlers of the page: the queries of each, and the values for its template."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from farm.connections import Connections
from farm.errors import UnknownRun
from farm.runs.revise import cancel
from farm.service.auth.browser import ROOT, Viewer
from farm.service.backend import Backend
from farm.service.openapi import operations
from farm.service.page import query, views
from farm.service.page.counts import Counts
from farm.service.page.program import program as shown_program
from farm.service.page.responses import html, program, to
from farm.store.keys import Scope
from farm.store.looking import PAGE, START, LinePlace, Looking, SeenRun
from farm.store.queries import Tally

#: Runs and batches in a list.
_MOST_RUNS, _MOST_BATCHES = 30, 10
#: Hours with single checks in a list.
_MOST_HOURS = 12
#: The list of runs waits so long for its counts; the rest appear at the next load.
_COUNT_SECONDS = 0.25
#: Queries of the page that run at once; the other threads stay free for API calls.
_AT_ONCE = 3

_T = TypeVar("_T")


class Site:
    """The handlers, over the backend that exists once the service has started."""

    def __init__(self, backend: Callable[[], Backend], schema: Callable[[], Mapping[str, object]]) -> None:
        self._backend, self._schema = backend, schema
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._counts = Counts(lambda run_id: self._ask(lambda looking: looking.counts(run_id)))

    async def _ask(self, question: Callable[[Looking], _T]) -> _T:
        return await self._backend().ask(lambda connections: question(Looking(connections.engine)))

    async def _look(self, question: Callable[[Looking], _T]) -> _T:
        async with self._slots:
            return await self._ask(question)

    async def _seen(self, viewer: Viewer, run_id: str) -> SeenRun:
        """Return a run; raises `UnknownRun` if it does not exist or the viewer may not see it."""
        found = await self._look(lambda looking: looking.run(run_id))
        if not viewer.sees(found):
            raise UnknownRun("no run has this id")
        return found

    async def _listed(self, viewer: Viewer, before: str = "") -> list[SeenRun]:
        if not viewer.sees_runs:
            return []
        return await self._look(lambda looking: looking.submitted(most=_MOST_RUNS + 1, before=before))

    async def _recent(self, viewer: Viewer) -> list[SeenRun]:
        """Return the newest runs that the viewer may see, then the newest batches."""
        batches = await self._look(lambda looking: looking.batches(viewer.key.id, most=_MOST_BATCHES))
        return [*await self._listed(viewer), *batches]

    async def runs(self, request: Request, viewer: Viewer) -> Response:
        """Show the newest runs, and the newest batches of the viewer's own key."""
        before = query.word(request, "before")
        listed = await self._listed(viewer, before)
        runs = listed[:_MOST_RUNS]
        batches = await self._look(lambda looking: looking.batches(viewer.key.id, most=_MOST_BATCHES))
        hours = await self._look(lambda looking: looking.hours(viewer.key.id))
        ids = [run.id for run in (*runs, *batches)]
        counts = await self._counts.some(ids, seconds=_COUNT_SECONDS)
        is_going_on = len(counts) < len(ids) or any(tally.unfinished for tally in counts.values())
        return html(
            "runs.html",
            viewer=viewer,
            runs=_listed_runs(runs, counts),
            batches=_listed_runs(batches, counts),
            hours=[(each, views.parts_of(each.counts)) for each in hours[:_MOST_HOURS]],
            is_first=not before,
            next=f"{ROOT}/?before={quote(runs[-1].id)}" if len(listed) > len(runs) else "",
            is_going_on=is_going_on,
        )

    async def checks(self, request: Request, viewer: Viewer) -> Response:
        """Show the single checks that the viewer's own key sent in an hour."""
        hour, before = query.hour(request), query.word(request, "before")
        found = await self._look(
            lambda looking: looking.checks(viewer.key.id, hour, before=before, most=PAGE + 1)
        )
        here = f"{ROOT}/checks?hour={quote(query.word(request, 'hour'))}"
        return html(
            "checks.html",
            viewer=viewer,
            hour=hour,
            checks=found[:PAGE],
            is_first=not before,
            first=here,
            next=f"{here}&before={quote(found[PAGE - 1].id)}" if len(found) > PAGE else "",
        )

    async def docs(self, _request: Request, viewer: Viewer) -> Response:
        """Show the addresses of the service."""
        return html("docs.html", viewer=viewer, operations=operations(self._schema()))

    async def run(self, request: Request, viewer: Viewer) -> Response:
        """Show a run: its verdicts, and the lines that pass the filter."""
        run = await self._seen(viewer, request.path_params["run"])
        wanted, after = query.wanted(request), query.after(request)
        found = self._look(lambda looking: looking.lines(run.id, wanted, after=after, most=PAGE + 1))
        tally, lines = await asyncio.gather(self._counts.of(run.id), found)
        return html(
            "run.html",
            viewer=viewer,
            run=run,
            title=views.title(run),
            tally=tally,
            parts=views.parts(tally),
            reasons=views.reasons(tally),
            wanted=wanted,
            lines=lines[:PAGE],
            after=after,
            is_first=after == START,
            first=query.first(request),
            next=query.following(request, lines[PAGE - 1].place if len(lines) > PAGE else None),
            others=[each for each in _named(await self._recent(viewer)) if each[0].id != run.id],
            may_cancel=viewer.may(Scope.CANCEL) and tally.unfinished > 0,
        )

    async def problems(self, request: Request, viewer: Viewer) -> Response:
        """Show the problems of a run, each with its number of answers and of proved ones."""
        run = await self._seen(viewer, request.path_params["run"])
        state, after = query.word(request, "state"), query.after(request)
        found = await self._look(
            lambda looking: looking.problems(run.id, state=state, after=after, most=PAGE + 1)
        )
        return html(
            "problems.html",
            viewer=viewer,
            run=run,
            title=views.title(run),
            state=state,
            problems=found[:PAGE],
            is_first=after == START,
            first=query.first(request),
            next=query.following(request, found[PAGE - 1].place if len(found) > PAGE else None),
        )

    async def line(self, request: Request, viewer: Viewer) -> Response:
        """Show a line: its program with the messages, its verdict, and the evidence for that."""
        run = await self._seen(viewer, request.path_params["run"])
        place = query.place(request)
        async with self._slots:
            # Rendered in the thread: a long program would block the event loop, and so the API calls.
            return await self._backend().ask(lambda connections: _line(connections, viewer, run, place))

    async def program(self, request: Request, viewer: Viewer) -> Response:
        """Return a line's program as a file."""
        run, place = await self._seen(viewer, request.path_params["run"]), query.place(request)
        async with self._slots:
            job = await self._backend().ask(lambda connections: connections.queries.line(run.id, *place))
        return program(job.source, f"{run.id}-{place.manifest}-{place.line}.lean")

    async def cancel(self, request: Request, viewer: Viewer) -> Response:
        """Cancel the unfinished lines of a run."""
        await query.require_own(request, viewer.session)
        viewer.require(Scope.CANCEL)
        run = await self._seen(viewer, request.path_params["run"])
        await self._backend().ask(lambda connections: cancel(connections.store, run.id))
        self._counts.forget(run.id)
        return to(f"{ROOT}/runs/{quote(run.id)}")

    async def compare(self, request: Request, viewer: Viewer) -> Response:
        """Show the lines, or the problems, with another verdict in another run."""
        listed, ids = await self._recent(viewer), [query.word(request, name) for name in ("one", "other")]
        if not all(ids):
            recent = _named(listed)
            return html("compare.html", viewer=viewer, listed=recent, ids=ids, by="", found=None)
        one, other = [await self._seen(viewer, run_id) for run_id in ids]
        by = "problems" if query.word(request, "by") == "problems" else "lines"
        after = query.after(request)
        found = await self._look(
            lambda looking: (
                looking.problems_that_differ(one.id, other.id, after=after)
                if by == "problems"
                else looking.lines_that_differ(one.id, other.id, after=after)
            )
        )
        turns = await self._look(lambda looking: looking.turns(one.id, other.id))
        return html(
            "compare.html",
            viewer=viewer,
            listed=_named(listed),
            ids=ids,
            by=by,
            one=one,
            other=other,
            turns=sorted(turns.items(), key=lambda turn: -turn[1]),
            found=found,
            is_first=after == START,
            first=query.first(request),
            next=query.following(request, found[-1].place if len(found) == PAGE else None),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _ListedRun:
    """A run in a list; `tally` is None while it is being counted."""

    run: SeenRun
    title: str
    tally: Tally | None
    parts: list[views.BarPart]


def _named(runs: list[SeenRun]) -> list[tuple[SeenRun, str]]:
    return [(run, views.title(run)) for run in runs]


def _listed_runs(runs: list[SeenRun], counts: dict[str, Tally]) -> list[_ListedRun]:
    return [
        _ListedRun(
            run=run,
            title=views.title(run),
            tally=counts.get(run.id),
            parts=views.parts(counts[run.id]) if run.id in counts else [],
        )
        for run in runs
    ]


def _line(connections: Connections, viewer: Viewer, run: SeenRun, place: LinePlace) -> Response:
    """Return the page of a line."""
    queries = connections.queries
    job = queries.line(run.id, *place)
    verdict = job.verdict
    return html(
        "line.html",
        viewer=viewer,
        run=run,
        title=views.title(run),
        place=place,
        job=job,
        verdict=verdict,
        program=shown_program(job),
        audit=verdict.audit if verdict else None,
        doubts=views.doubts(job, verdict) if verdict else [],
        attempts=queries.attempts(run.id, *place)[:100],
        limits=Looking(connections.engine).limits(run.id, place),
    )
