"""Logs: each event is one line, words or a JSON object, whatever is told in it, and without passwords."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from farm import log
from farm.log import about, logger

#: What a proof may bring: line ends of every kind, and what a terminal would obey.
HOSTILE = "a\nb\r\nc\x1b[31m\x85d\u2028e\u202ef\x00g\ud800\t\x0bh\x1c{}"
FORGED = "2026-01-01 00:00:00,000 INFO farm: forged"


@contextmanager
def logging_as(form: str, level: str = "debug") -> Iterator[io.StringIO]:
    """Configure the logs of this process as a command does, into a text; afterwards they are as before."""
    root = logging.getLogger()
    before, at, stderr = root.handlers[:], root.level, sys.stderr
    root.handlers = []
    sys.stderr = written = io.StringIO()
    try:
        log.configure(level, form)
        yield written
    finally:
        root.handlers, sys.stderr = before, stderr
        root.setLevel(at)


def fail(words: str) -> None:
    raise ValueError(words)


def events(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.parametrize("form", log.FORMATS)
def test_an_event_is_one_line_whatever_is_told_in_it(form: str) -> None:
    with logging_as(form) as written:
        logger("farm.test", {"name": HOSTILE}).warning("Said: %s\n%s", HOSTILE, FORGED)
        said = written.getvalue()
    assert said.count("\n") == 1
    assert said.endswith("\n")
    assert len(said.splitlines()) == 1
    assert said[:-1].isprintable()


@pytest.mark.parametrize("form", log.FORMATS)
def test_a_traceback_is_in_the_line_of_its_event(form: str) -> None:
    with logging_as(form) as written:
        try:
            fail(HOSTILE + "\n" + FORGED)
        except ValueError:
            logger("farm.test").exception("It failed")
        said = written.getvalue()
    assert len(said.splitlines()) == 1
    assert "ValueError" in said
    assert "test_log.py" in said


def test_a_json_event_has_its_time_level_logger_message_and_fields() -> None:
    with logging_as("json") as written:
        logger("farm.test", {"check_id": 7, "attempt": 2}).info("Checked %s", HOSTILE)
    (event,) = events(written)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", event.pop("time"))
    assert event == {
        "level": "info",
        "logger": "farm.test",
        "message": f"Checked {HOSTILE}",
        "check_id": 7,
        "attempt": 2,
    }


def test_a_json_event_of_an_error_has_its_traceback() -> None:
    with logging_as("json") as written:
        try:
            fail("why")
        except ValueError:
            logger("farm.test").exception("It failed")
    (event,) = events(written)
    assert (event["level"], event["message"]) == ("error", "It failed")
    assert event["traceback"].startswith("Traceback (most recent call last):\n")
    assert event["traceback"].endswith("\nValueError: why")


def test_a_text_event_has_its_fields_at_its_end() -> None:
    with logging_as("text") as written:
        logger("farm.test", {"check_id": 7, "attempt": 2}).info("Checked")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d INFO farm\.test: Checked check_id=7 attempt=2\n",
        written.getvalue(),
    )


def test_a_field_cannot_pass_for_the_events_own() -> None:
    with logging_as("json") as written:
        logger("farm.test", {"level": "debug", "message": "forged", "more": 1}).error("Said")
    (event,) = events(written)
    assert (event["level"], event["message"], event["more"]) == ("error", "Said", 1)


def test_what_a_thread_is_about_is_told_by_all_that_logs_in_it_and_by_no_other_thread() -> None:
    def elsewhere() -> None:
        logging.getLogger("other").warning("elsewhere")

    with logging_as("json") as written:
        with about(check_id=1), about(attempt=2):
            logging.getLogger("library").warning("inside")
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        logging.getLogger("library").warning("outside")
    inside, other, outside = events(written)
    assert (inside["check_id"], inside["attempt"]) == (1, 2)
    assert "check_id" not in other
    assert "check_id" not in outside


@pytest.mark.parametrize("form", log.FORMATS)
@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://farm:SECRET@db.example/farm",
        "redis://:SECRET@redis.example/0",
        "postgresql://db.example/farm?user=x&password=SECRET&sslmode=require",
        "rediss://redis.example?ssl_keyfile_password=SECRET",
    ],
)
def test_no_password_of_a_url_is_written(form: str, url: str) -> None:
    with logging_as(form) as written:
        try:
            fail(f"cannot reach {url}")
        except ValueError:
            logging.getLogger("celery").exception("cannot reach %s", url)
            logger("farm.test").exception("cannot reach %s", url)
    assert "SECRET" not in written.getvalue()
    assert ".example" in written.getvalue()


@pytest.mark.parametrize("form", log.FORMATS)
def test_a_line_does_not_grow_with_what_is_told_in_it(form: str) -> None:
    with logging_as(form) as written:
        logger("farm.test").warning("%s", "://a:" * 1_000_000)
    assert len(written.getvalue()) < 25_000


@pytest.mark.parametrize("form", log.FORMATS)
def test_what_is_written_past_the_log_looks_like_it(form: str) -> None:
    with logging_as(form) as written:
        logger("farm.test").info("Ending")
        past = log.line("farm.test", logging.INFO, "Ending").decode()
    digits = re.compile(r"\d")
    assert digits.sub("0", past) == digits.sub("0", written.getvalue())


@pytest.mark.parametrize("library", ["celery.worker", "kombu", "alembic", "uvicorn.error"])
def test_libraries_that_talk_about_everything_are_heard_when_they_warn(library: str) -> None:
    with logging_as("json", "info") as written:
        logging.getLogger(library).info("talk")
        logging.getLogger(library).warning("a\n  banner")
    assert [event["level"] for event in events(written)] == ["warning"]


def test_the_last_words_of_a_command_are_an_event_where_logs_are_json() -> None:
    program = (
        "from farm import log; from farm.cli.command import run; from farm.errors import FarmError\n"
        "import typer\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def fail(kind: str) -> None:\n"
        "    log.configure('info', 'json')\n"
        "    raise FarmError('why\\nmore') if kind == 'foreseen' else ValueError('odd')\n"
        "run(app, 'farm')"
    )
    for kind, message in (("foreseen", "why\nmore"), ("unforeseen", "internal error")):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", program, kind], capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 1
        (line,) = ended.stderr.splitlines()
        assert json.loads(line)["message"].startswith(message)
