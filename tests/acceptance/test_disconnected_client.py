"""A client of the service goes away before its batch is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.commands import HEADER, Running
from tests.farms import Quiet
from tests.processes import eventually


def test_a_batch_whose_client_went_away_is_given_up_until_somebody_asks(quiet: Quiet, tmp_path: Path) -> None:
    item = {"program": HEADER + "theorem t : True := True.intro\n"}
    left = "SELECT id FROM runs WHERE deadline_at IS NOT NULL"
    with _served(quiet, tmp_path / "first") as (service, client):
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/batches", json={"items": [item], "wait_seconds": 600}, timeout=1.0)
        eventually(lambda: quiet.ask("SELECT id FROM runs"))
        service.process.terminate()  # which lets it finish what is under way
        service.ended()
    (batch,) = quiet.ask(left)
    with _served(quiet, tmp_path / "second") as (service, client):
        assert client.get(f"/v1/batches/{batch}").status_code == 202
    assert quiet.ask(left) == []


@contextmanager
def _served(quiet: Quiet, folder: Path) -> Iterator[tuple[Running, httpx.Client]]:
    socket = folder / "socket"
    with quiet.farm.started(folder, "serve", "--uds", socket) as service:
        eventually(lambda: "Listening" in service.said, seconds=60)
        transport = httpx.HTTPTransport(uds=str(socket))
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=60) as client:
            yield service, client
