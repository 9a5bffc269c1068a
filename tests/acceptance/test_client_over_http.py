"""The HTTP client against a real service with a real worker: its rewards, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from farm.client import (
    AsyncClient,
    Bundle,
    Client,
    Forbidden,
    Invalid,
    NotFound,
    Result,
    TooLarge,
    Unauthorized,
)
from farm.service.auth.local_token import LOCAL
from tests.bare_install import Bare, built
from tests.commands import ENDLESS, HEADER, PROGRAMS, PROVED, WRONG, Command
from tests.farms import Quiet, asking
from tests.http_service import TOKEN, listening
from tests.processes import CODE, PATIENCE, eventually
from tests.served import Proxy, served, url_of

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "rl.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
LOOSE = ["unchecked", "forgeable"]


@pytest.fixture(scope="module")
def path(farm: Command) -> Path:
    """The socket of a service of the session's farm, in its home."""
    return Path(farm.settings["FARM_HOME"]) / "http.sock"


@pytest.fixture(scope="module")
def proxy(farm: Command, path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy before that service, which runs as long as this does."""
    with Proxy(path) as proxy, served(farm, tmp_path_factory.mktemp("serve"), path, behind=[proxy]):
        yield proxy


@pytest.fixture(autouse=True)
def _runs(proxy: Proxy) -> None:
    proxy.requests.clear()


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    with Client(url_of(path), accept=LOOSE, deadline=120 * PATIENCE) as client:
        yield client


def program(kind: tuple[str, str], number: object) -> str:
    return HEADER + PROGRAMS[kind].format(n=number)


def mixed(name: str, count: int) -> tuple[list[str], list[float]]:
    """Return programs that nobody else checks, and their rewards."""
    kinds = [PROVED if number % 3 else WRONG for number in range(count)]
    texts = [program(kind, f"_{name}_{number}") for number, kind in enumerate(kinds)]
    return texts, [float(kind == PROVED) for kind in kinds]


def endless(name: str, seconds: float) -> dict[str, object]:
    text = program(ENDLESS, f"_{name}").replace("theorem", "set_option maxHeartbeats 0 in\ntheorem")
    return {"program": text, "timeout": seconds}


def rewards(results: list[Result]) -> list[float | None]:
    return [each.reward for each in results]


def batches(farm: Command) -> int:
    """Return how many batches the farm has stored."""
    with asking(farm) as (_, queries), queries.engine.connect() as connection:
        return int(connection.scalar(text("SELECT count(*) FROM runs")) or 0)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_page_print_rewards(path: Path, tmp_path: Path, number: int) -> None:
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[number].replace('accept=["unchecked"]', f"accept={LOOSE}"))
    outside = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
    ended = subprocess.run(
        [sys.executable, script],
        env={**outside, "PYTHONPATH": CODE, "FARM_HOME": str(path.parent)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    if number == 0:
        assert ended.stdout == "[1.0, 0.0]\n"
    else:
        assert sorted(ended.stdout.splitlines()) == ["0 0.0", "1 0.0", "2 1.0", "3 0.0"]


def test_an_installation_without_extras_gets_rewards(path: Path, tmp_path: Path) -> None:
    bare = Bare(tmp_path / "venv", built(tmp_path))
    ended = bare.python(EXAMPLES[0], FARM_HOME=str(path.parent))
    assert (ended.returncode, ended.stdout) == (0, "[1.0, 0.0]\n"), ended.stderr


def test_a_result_says_what_the_reward_rests_on(client: Client) -> None:
    item = {"header": HEADER, "formal_statement": "theorem t : True := by", "generation": "exact True.intro"}
    result = client.check({**item, "name": "n", "group": "g"}, accept=["forgeable"])
    assert (result.reward, result.verdict, result.status) == (1.0, "proved", "done")
    assert (result.name, result.group, result.index) == ("n", "g", 0)
    assert result.provenance is not None
    assert (result.provenance.tier, result.provenance.statement) == ("kernel", "compared")
    assert result.seconds is not None
    wrong = client.check({**item, "generation": "exact False.elim"})
    assert (wrong.reward, wrong.verdict) == (0.0, "rejected")
    assert [each.origin for each in wrong.messages] == ["answer"]


def test_a_theorem_below_its_context_is_judged_and_only_errors_of_the_context_are_told(
    client: Client,
) -> None:
    context = f"{HEADER}namespace N\n\ntheorem left : (1 : Nat) = 2 := sorry\n\n/-- Doc. -/\n"
    item = {"context": context, "formal_statement": "theorem t : (1 : Nat) = 2", "proof": ":= left"}
    result = client.check(item)
    assert (result.verdict, result.reward, result.messages) == ("proved", 0.0, ())
    assert client.check(item, accept=["sorry"]).reward == 1.0
    assert client.check(item | {"proof": ":= sorry"}).reason == "has_sorry"
    with pytest.raises(Invalid, match="give one"):
        client.check(item | {"header": HEADER})


def test_a_weaker_proof_is_worth_something_only_to_who_accepts_it(path: Path) -> None:
    with Client(url_of(path), accept=["forgeable"]) as client:
        one, other = (client.check(program(PROVED, "_weak"), accept=each) for each in (["forgeable"], LOOSE))
    assert (one.verdict, one.reward, other.reward) == ("proved", 0.0, 1.0)
    assert "unchecked" in one.weaker


@pytest.mark.parametrize("size", [1024, 3])
def test_results_come_in_the_order_of_the_items_however_they_are_split(path: Path, size: int) -> None:
    texts, expected = mixed(f"order{size}", 20)
    with Client(url_of(path), accept=LOOSE, batch_size=size) as client:
        found = client.check_all(texts)
        assert rewards(found) == expected
        assert [each.index for each in found] == list(range(20))
        assert client.check_all([]) == []


@pytest.mark.parametrize("size", [1024, 3])
def test_both_clients_return_the_same(path: Path, size: int) -> None:
    texts, expected = mixed(f"twin{size}", 20)

    async def ask() -> list[Result]:
        async with AsyncClient(url_of(path), accept=LOOSE, batch_size=size) as client:
            return await client.check_all(texts)

    assert rewards(asyncio.run(ask())) == expected


def test_progress_is_told_for_every_item(client: Client) -> None:
    texts, expected = mixed("progress", 10)
    told = list[tuple[int, int]]()
    assert rewards(client.check_all(texts, progress=lambda *now: told.append(now))) == expected
    assert told == [(done, 10) for done in range(1, 11)]


def test_a_stream_yields_what_is_done_first_first(client: Client) -> None:
    texts, expected = mixed("stream", 8)
    found = list(client.stream([endless("stream", 2.0), *texts]))
    assert found[-1].index == 0
    assert (found[-1].verdict, found[-1].reward) == ("timeout", 0.0)
    assert {each.index: each.reward for each in found[:-1]} == dict(enumerate(expected, 1))


def test_an_asynchronous_stream_yields_every_item_once(path: Path) -> None:
    texts, expected = mixed("astream", 12)

    async def ask() -> list[Result]:
        async with AsyncClient(url_of(path), accept=LOOSE) as client:
            return [each async for each in client.stream(texts)]

    assert {each.index: each.reward for each in asyncio.run(ask())} == dict(enumerate(expected))


def test_what_is_not_known_at_the_deadline_has_no_reward_and_is_not_begun(client: Client) -> None:
    more = (os.cpu_count() or 1) + 2  # than a worker checks at once
    fast = program(PROVED, "_deadline")
    slow = [endless(f"deadline{n}", 5.0 * PATIENCE) for n in range(more)]
    assert client.check(fast).reward == 1.0
    known, *unknown = client.check_all([fast, *slow], deadline=4.0 * PATIENCE)
    assert known.reward == 1.0
    assert {(each.reward, each.verdict) for each in unknown} == {(None, None)}
    batch = str(unknown[0].id).rpartition("-")[0]
    eventually(lambda: client.batch(batch).done, seconds=60)
    assert "cancelled" in {each.status for each in client.batch(batch).results}


def test_a_stream_that_is_closed_early_cancels_the_rest(client: Client, farm: Command) -> None:
    stream = client.stream([program(PROVED, "_closed"), endless("closed", 60.0)])
    first = next(stream)
    assert first.index == 0
    stream.close()
    batch = str(first.id).rpartition("-")[0]
    assert client.batch(batch, wait_seconds=30).done
    assert [each.reward for each in client.batch(batch).results] == [1.0, None]


def test_a_batch_is_submitted_looked_at_and_cancelled(client: Client) -> None:
    items = [{**endless(f"submit{n}", 60.0), "group": f"g{n}"} for n in range(3)]
    batch = client.submit(items)
    assert not client.batch(batch).done
    assert client.cancel(batch, groups=["g1"]) == 1
    assert client.cancel(batch) == 2
    found = client.batch(batch, wait_seconds=30)
    assert found.done
    assert rewards(list(found.results)) == [None] * 3


def test_the_environments_are_listed(client: Client) -> None:
    (core,) = client.environments()
    assert (core.name, core.served) == ("core", True)
    assert "kernel" in core.tiers


def test_a_proof_is_had_as_files_for_others(path: Path, client: Client) -> None:
    item = {"header": HEADER, "formal_statement": "theorem t : True := by", "proof": "exact True.intro"}
    found = client.check(item, timeout=30).id
    assert found is not None

    async def ask() -> Bundle:
        async with AsyncClient(url_of(path)) as other:
            return await other.bundle(found)

    bundle = client.bundle(found)
    assert (bundle.item, bundle) == (found, asyncio.run(ask()))
    assert "exact True.intro" in bundle.files["Solution.lean"]


def test_declarations_are_found_by_parts_of_their_names(client: Client) -> None:
    found = client.declarations("and comm", environment="core", most=1)
    assert (found.total, found.declarations[0].name, found.declarations[0].module) == (3, "And.comm", "Core")


def test_a_session_is_used_again_by_its_id(client: Client) -> None:
    with client.session({"program": HEADER + "theorem t : True := by sorry\n"}) as session:
        again = client.resumed(session.id)
        assert again.step(session.root, "trivial")[0].outcome == "no_goals"


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda client: client.check({"programme": "x"}), Invalid),
        (lambda client: client.check("x", timeout=-1.0), Invalid),
        (lambda client: client.check("x", environment="nowhere"), NotFound),
        (lambda client: client.batch("nothing"), NotFound),
    ],
)
def test_what_is_wrong_with_a_request_is_raised(
    client: Client, ask: Callable[[Client], object], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"\(4"):
        ask(client)


def test_a_text_that_no_encoding_has_is_judged_like_any_other(client: Client) -> None:
    odd, fine = client.check_all([HEADER + "theorem t : True := \ud800", program(PROVED, "_odd")])
    assert (odd.reward, fine.reward) == (0.0, 1.0)


def test_an_item_under_the_key_of_an_earlier_batch_is_the_item_of_then(client: Client) -> None:
    slow = {**endless("key", 1.5), "key": "test-key-slow"}
    client.submit([slow], deadline=120 * PATIENCE)  # a key stands for the options, too
    found = client.check_all([{"program": program(PROVED, "_key"), "key": "test-key-fast"}, slow])
    assert [(each.verdict, each.index) for each in found] == [("proved", 0), ("timeout", 1)]


# What goes wrong on the way


@pytest.mark.parametrize("lost", [1, 3])
def test_an_answer_that_was_lost_doubles_nothing(proxy: Proxy, farm: Command, lost: int) -> None:
    texts, expected = mixed(f"lost{lost}", 6)
    before = batches(farm)
    with Client(proxy.url, accept=LOOSE, deadline=60 * PATIENCE) as client:
        proxy.answers_to_lose = lost
        assert rewards(client.check_all(texts)) == expected
        assert proxy.answers_to_lose == 0
        assert proxy.requests.count(b"POST /v1/batches") == lost + 1
    assert batches(farm) == before + 1


def test_a_broken_stream_of_events_loses_nothing(proxy: Proxy) -> None:
    texts, expected = mixed("events", 6)
    with Client(proxy.url, accept=LOOSE, deadline=60 * PATIENCE) as client:
        stream = client.stream([*texts, endless("events", 2.0)])
        found = [next(stream)]
        proxy.answers_to_lose = 1
        found += stream
    assert sorted(each.index for each in found) == list(range(7))
    assert {each.index: each.reward for each in found} == dict(enumerate([*expected, 0.0]))


def test_a_service_that_is_killed_and_started_again_is_waited_for(farm: Command, tmp_path: Path) -> None:
    ways = ["check_all", "stream"]
    asked = {way: mixed(f"killed_{way}", 6) for way in ways}
    found = {way: list[Result]() for way in ways}
    path = tmp_path / "s"
    before = batches(farm)

    def ask(way: str) -> None:
        items = [*asked[way][0], endless(f"killed_{way}", 4.0)]
        with Client(proxy.url, accept=LOOSE, deadline=120 * PATIENCE) as client:
            found[way].extend(getattr(client, way)(items))

    with Proxy(path) as proxy:
        with served(farm, tmp_path / "first", path, behind=[proxy]) as running:
            asking = [threading.Thread(target=ask, args=(way,)) for way in ways]
            for each in asking:
                each.start()
            eventually(lambda: batches(farm) == before + len(ways))
            running.process.kill()
            running.process.wait()
        with served(farm, tmp_path / "second", path, behind=[proxy]):
            for each in asking:
                each.join(120 * PATIENCE)
    for way in ways:
        assert {each.index: each.reward for each in found[way]} == dict(enumerate([*asked[way][1], 0.0]))
        assert len(found[way]) == 7
    assert batches(farm) == before + len(ways)


def test_a_service_that_stays_away_is_an_unknown_reward(farm: Command, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Proxy(path) as proxy, Client(proxy.url, deadline=4.0) as client:
        with served(farm, tmp_path / "serve", path, behind=[proxy]):
            client.environments()
        found = client.check_all(["one", "two"])
    assert rewards(found) == [None, None]
    assert {each.status for each in found} == {"unknown"}


def test_a_full_queue_is_waited_for_and_nothing_is_taken_of_what_it_refused(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    done = list[Result]()

    def batches_there() -> list[str]:
        return [str(each) for each in quiet.ask("SELECT id FROM runs ORDER BY created_at")]

    with served(quiet.farm, tmp_path / "serve", path, FARM_QUEUE_LIMIT="1"), Client(url_of(path)) as client:
        client.submit([program(PROVED, "_full")])
        eventually(lambda: "429" in client.check("theorem", deadline=1.0).detail)
        before = batches_there()
        asking = threading.Thread(target=lambda: done.append(client.check("x", deadline=60 * PATIENCE)))
        asking.start()
        for batch in before:
            client.cancel(batch)
        eventually(lambda: len(batches_there()) > len(before))
        client.cancel(batches_there()[-1])
        asking.join(60 * PATIENCE)
    assert [(each.status, each.reward) for each in done] == [("cancelled", None)]
    assert len(batches_there()) == len(before) + 1


def test_a_client_from_before_a_fork_asks_by_connections_of_its_own(client: Client) -> None:
    assert client.check(program(PROVED, "_before")).reward == 1.0
    forking = multiprocessing.get_context("fork")
    answers: Any = forking.SimpleQueue()
    children = [forking.Process(target=_ask_in_child, args=(client, answers, number)) for number in range(4)]
    for child in children:
        child.start()
    assert client.check(program(WRONG, "_parent")).reward == 0.0
    for child in children:
        child.join(60 * PATIENCE)
    assert sorted(answers.get() for _ in children) == [(0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0)]


def _ask_in_child(client: Client, answers: Any, number: int) -> None:
    kind = WRONG if number % 2 else PROVED
    answers.put((number, client.check(program(kind, f"_child{number}")).reward))


def test_an_asynchronous_client_serves_one_event_loop_after_another(path: Path) -> None:
    client = AsyncClient(url_of(path), accept=LOOSE)
    for number in range(3):
        assert asyncio.run(_closing(client, program(PROVED, f"_loop{number}"))) == 1.0


async def _closing(client: AsyncClient, item: str) -> float | None:
    result = await client.check(item)
    await client.close()
    return result.reward


def test_many_threads_share_a_client(client: Client) -> None:
    found = dict[int, float | None]()

    def ask(number: int) -> None:
        found[number] = client.check(program(WRONG if number % 2 else PROVED, f"_thread{number}")).reward

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {number: float(number % 2 == 0) for number in range(40)}


def test_no_proxy_of_the_environment_is_asked_for_this_machine(
    path: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for url in (url_of(path), proxy.url):
        with Client(url) as client:
            assert client.environments()


def test_a_service_on_a_port_is_found_by_its_files_and_keeps_others_out(
    farm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with asking(farm) as (facts, _):
        servers = {"FARM_DATABASE_URL": facts.database_url, "FARM_BROKER_URL": facts.broker_url}
    elsewhere = farm.having(FARM_HOME=str(home), **servers)  # the farm's own home has a service already
    monkeypatch.setenv("FARM_HOME", str(home))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with _at_port(elsewhere, tmp_path / "first", home, port):
        client = Client(accept=LOOSE, deadline=240 * PATIENCE)
        token = (home / "http.token").read_text()
        assert client.check(program(PROVED, "_port")).reward == 1.0
        with Client(client.url, token=f"{token[:-1]}!") as other, pytest.raises(Unauthorized, match="401"):
            other.check("x")
        read_only = elsewhere("keys", "add", "reader", "--scope", "read").stdout.strip()
        with Client(client.url, token=read_only) as reader, pytest.raises(Forbidden, match="403"):
            reader.check("x")
    with client:  # which asks before there is a service again, and then by another token
        done = list[Result]()
        restart = threading.Thread(target=lambda: done.append(client.check(program(PROVED, "_restart"))))
        restart.start()
        with _at_port(elsewhere, tmp_path / "second", home, port):
            restart.join(240 * PATIENCE)
            assert (home / "http.token").read_text() != token
    assert rewards(done) == [1.0]


@contextlib.contextmanager
def _at_port(farm: Command, folder: Path, home: Path, port: int) -> Iterator[None]:
    """`farm serve` at a port, stopped in order, so that its files are gone afterwards."""
    with farm.forked(folder, "serve", "--port", port) as running:
        eventually(lambda: "Listening" in running.said and (home / "http.json").exists(), seconds=60)
        yield
        running.process.send_signal(signal.SIGINT)
        running.ended()
        assert not (home / "http.token").exists()


def test_an_interrupted_program_ends_at_once(path: Path, tmp_path: Path) -> None:
    script = (
        "from farm.client import Client\n"
        f"client = Client({url_of(path)!r}, batch_size=1)\n"
        f"items = [{{'program': {HEADER!r} + f'theorem t{{n}} : 1 = 1 := sorry', 'timeout': 60.0, "
        "'environment': 'core', 'name': str(n)} for n in range(2)]\n"
        f"items.append({endless('interrupted', 60.0)!r})\n"
        "print('asking', flush=True)\n"
        "client.check_all(items)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": CODE},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"asking\n"
        with Client(url_of(path)) as client:
            eventually(lambda: client.environments())
        process.send_signal(2)
        assert process.wait(10 * PATIENCE) != 0


@pytest.mark.parametrize("most", [1, 7])
def test_more_items_than_a_key_may_have_unfinished_are_split_as_the_service_says(
    farm: Command, most: int
) -> None:
    texts, expected = mixed(f"limited{most}", 10)
    with (
        listening(farm, replace(LOCAL, name="limited", in_flight=most)) as url,
        Client(url, token=TOKEN, accept=LOOSE, deadline=120 * PATIENCE) as client,
    ):
        assert rewards(client.check_all(texts)) == expected
        assert rewards(client.check_all(texts)) == expected  # as the first answer taught it
        found = list(client.stream(texts))
        assert sorted(each.index for each in found) == list(range(10))
        with pytest.raises(TooLarge, match=f"more than the {most} that key limited"):
            client.submit(texts)

        async def again() -> list[Result]:
            async with AsyncClient(url, token=TOKEN, accept=LOOSE) as other:
                return await other.check_all(texts)

        assert rewards(asyncio.run(again())) == expected
