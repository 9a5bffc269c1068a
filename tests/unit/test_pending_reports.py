"""Checks whose reports come later are concluded once each, whoever comes first: the report, or the end."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from farm_workers.loop.pending_reports import PendingReports

from farm.judging.report import Execution, Report

COME = Report(run=Execution(exit_status=0))


class Concluded:
    """Remembers what was concluded, and lets others wait for it."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.threads: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, report: Report) -> None:
        with self._changed:
            self.reports.append(report)
            self.threads.append(threading.current_thread().name)
            self._changed.notify_all()

    def reaches(self, number: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.reports) >= number, 30)


def test_a_report_is_concluded_when_it_comes_and_not_in_the_thread_that_brings_it() -> None:
    later, concluded, report = PendingReports(lambda: False), Concluded(), Future[Report]()
    later.put(report, concluded)
    assert len(later) == 1

    report.set_result(COME)

    assert concluded.reaches(1)
    later.drain()
    assert (concluded.reports, concluded.threads, len(later)) == ([COME], ["later"], 0)


def test_a_report_that_had_come_already_is_concluded_too() -> None:
    later, concluded, report = PendingReports(lambda: False), Concluded(), Future[Report]()
    report.set_result(COME)
    later.put(report, concluded)
    later.drain()
    assert concluded.reports == [COME]


def test_a_failure_in_the_place_of_a_report_is_the_farms() -> None:
    later, concluded, report = PendingReports(lambda: False), Concluded(), Future[Report]()
    later.put(report, concluded)
    report.set_exception(ValueError("why"))
    assert concluded.reaches(1)
    assert concluded.reports[0].run.box_error == "ValueError: why"


def test_at_a_recall_all_are_concluded_at_once_and_late_reports_are_not_heard() -> None:
    recalled = threading.Event()
    later, concluded = PendingReports(recalled.is_set), Concluded()
    reports = [Future[Report]() for _ in range(3)]
    for report in reports:
        later.put(report, concluded)
    draining = threading.Thread(target=later.drain)
    draining.start()
    recalled.set()
    draining.join(30)
    assert not draining.is_alive()
    assert len(concluded.reports) == 3

    for report in reports:
        report.set_result(COME)
    last = Future[Report]()
    later.put(last, concluded)
    last.set_result(COME)
    assert concluded.reaches(4)  # what came before it was not concluded again
    assert concluded.reports.count(COME) == 1


def test_a_thread_that_brings_one_too_many_waits_until_another_is_concluded() -> None:
    later, concluded = PendingReports(lambda: False, most=1), Concluded()
    first, second = Future[Report](), Future[Report]()
    later.put(first, concluded)
    brought = threading.Thread(target=lambda: later.put(second, concluded))
    brought.start()
    assert not concluded.reports
    assert brought.is_alive()

    first.set_result(COME)
    brought.join(30)
    assert not brought.is_alive()
    second.set_result(COME)
    assert concluded.reaches(2)


def test_a_conclusion_may_wait_for_the_one_that_brings_reports() -> None:
    later, asked, answered = PendingReports(lambda: False), threading.Event(), threading.Event()
    report, other = Future[Report](), Future[Report]()

    def examines(_report: Report) -> None:
        asked.set()
        assert other.result(30) is COME
        answered.set()

    def brings() -> None:
        report.set_result(COME)
        if asked.wait(30):  # the conclusion waits for this very thread
            other.set_result(COME)

    later.put(report, examines)
    bringing = threading.Thread(target=brings)
    bringing.start()
    assert answered.wait(30)
    bringing.join()
