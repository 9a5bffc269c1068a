"""Bodies of requests: what they cost this process, and which of them is read at all."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc

import pytest
from fastapi import FastAPI, HTTPException

from farm.service.json_body import Route, parsed


@pytest.mark.whole
def test_a_body_with_an_odd_number_at_its_end_takes_little_memory_besides_its_json() -> None:
    body = b"[" + b"[0]," * 200_000 + b"NaN]"
    tracemalloc.start()
    try:
        with pytest.raises(HTTPException) as raised:
            parsed(body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert raised.value.detail[0]["loc"] == ["body", 200_000]  # type: ignore[index]
    assert most < 30_000_000, "its lists take 16 MB"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'{"a": {}, "b": [1, {"c": [[], 2, NaN, Infinity]}], "d": NaN}', ("b", 1, "c", 2)),
        (b'{"a": {"b": [1]}, "c": 1e999}', ("c",)),
        (b"NaN", ()),
    ],
)
def test_the_first_odd_number_is_told_with_its_path(body: bytes, place: tuple[object, ...]) -> None:
    with pytest.raises(HTTPException) as raised:
        parsed(body)
    assert raised.value.detail[0]["loc"] == ["body", *place]  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'{"a": 1, "a": 1}', ("a",)),
        (b'{"a": 1, "\\u0061": 2}', ("a",)),
        (b'{"a": NaN, "a": 1}', ("a",)),
        (b'{"items": [{}, {"proof": "x", "header": "", "proof": "y"}]}', ("items", 1, "proof")),
        (b'[[{"b": {"c": {"d": 1, "e": {}, "d": {}}}}]]', (0, 0, "b", "c", "d")),
        (b'{"x": {"a": 1, "a": 2}, "x": {"a": 1}}', ("x",)),
        (b'{"x": [{"a": 1, "a": 2}], "y": {"x": {}, "": 0, "": 0}}', ("y", "")),
    ],
)
def test_a_field_given_twice_is_refused_with_its_path(body: bytes, place: tuple[object, ...]) -> None:
    with pytest.raises(HTTPException) as raised:
        parsed(body)
    assert raised.value.status_code == 422
    (fault,) = raised.value.detail  # type: ignore[misc]
    assert fault["loc"] == ["body", *place]  # type: ignore[index]
    assert "is given twice; keep one of the two" in fault["msg"]  # type: ignore[index]


def test_fields_of_one_name_in_two_objects_are_given_once() -> None:
    assert parsed(b'{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}') == {"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}


async def _answered(body: bytes) -> tuple[int, int]:
    """Post a body; returns the status, and how often others had a turn between its arrival and the answer."""
    app, turns, statuses = FastAPI(), 0, list[int]()
    app.router.route_class = Route

    @app.post("/")
    async def post(_body: list[int]) -> None:
        pass

    async def receive() -> dict[str, object]:
        nonlocal turns
        turns = 0
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(int(str(message["status"])))

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    await app(scope, receive, send)  # type: ignore[arg-type]
    others.cancel()
    return statuses[0], turns


def test_others_have_their_turn_while_a_large_body_is_parsed() -> None:
    status, turns = asyncio.run(_answered(b"[" + b"0," * 500_000 + b"NaN]"))
    assert status == 422
    assert turns > 20


def test_no_search_for_garbage_keeps_others_waiting_while_a_large_body_is_parsed() -> None:
    searching: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            searching.append(threading.current_thread().name)

    gc.callbacks.append(note)
    try:
        status, _ = asyncio.run(_answered(b"[" + b"[]," * 200_000 + b"NaN]"))
    finally:
        gc.callbacks.remove(note)
    assert status == 422
    # Python makes up for them once, when the body is parsed.
    assert len([name for name in searching if name.startswith("bodies")]) <= 1
    assert gc.isenabled()
