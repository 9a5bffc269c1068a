"""Worker step, pending reports: concludes checks whose reports arrive after their thread has gone on.

A judge may send many proofs to another service in one batch. No thread waits for the reply: the check stays
leased, its thread claims the next, and a separate thread concludes the check when the report arrives. The
thread that delivers the report does not conclude it, because a conclusion may ask that same judge whether
this machine is healthy.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from farm.judging.report import Execution, Report

#: At most this many reports are pending at once; a thread that adds one more waits.
MOST = 256
#: How often a waiting thread looks whether all reports were given up, in seconds.
_LOOK_SECONDS = 0.2

#: Called with the report of a check.
Conclude = Callable[[Report], None]


class PendingReports:
    """Concludes checks when their reports arrive, each once; thread-safe.

    `is_recalled` returns whether the worker must give up its checks: then each is concluded at once.
    """

    def __init__(self, is_recalled: Callable[[], bool], *, most: int = MOST) -> None:
        self._is_recalled, self._most = is_recalled, most
        self._changed = threading.Condition()
        self._open: dict[Future[Report], Conclude] = {}
        self._concluding = 0
        self._come: queue.SimpleQueue[Future[Report]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, report: Future[Report], conclude: Conclude) -> None:
        """Call `conclude(report)` when the report is there; block while `MOST` are pending."""
        with self._changed:
            while len(self._open) >= self._most and not self._is_recalled():
                self._changed.wait(_LOOK_SECONDS)
            self._open[report] = conclude
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="later", daemon=True)
                self._thread.start()
        report.add_done_callback(self._come.put)

    def drain(self) -> None:
        """Return when all are concluded: with their reports, or at once if the worker gives up its checks."""
        with self._changed:
            while (self._open or self._concluding) and not self._is_recalled():
                self._changed.wait(_LOOK_SECONDS)
            left = list(self._open)
        for report in left:
            self._conclude(report, Report(run=Execution(box_error="the worker is stopping")))
        with self._changed:
            self._changed.wait_for(lambda: not self._concluding)

    def __len__(self) -> int:
        return len(self._open)

    def _work(self) -> None:
        while True:
            report = self._come.get()
            error = report.exception()
            if error is None:
                self._conclude(report, report.result())
            else:
                why = f"{type(error).__name__}: {error}"
                self._conclude(report, Report(run=Execution(box_error=why)))

    def _conclude(self, report: Future[Report], come: Report) -> None:
        """Conclude a check unless another thread does: the one that removes it concludes it."""
        with self._changed:
            conclude = self._open.pop(report, None)
            self._concluding += conclude is not None
        if conclude is None:
            return
        try:
            conclude(come)
        finally:
            with self._changed:
                self._concluding -= 1
                self._changed.notify_all()
