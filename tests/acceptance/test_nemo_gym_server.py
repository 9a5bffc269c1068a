"""The resources server for NeMo-Gym over HTTP, on a stand-in for what it imports of NeMo-Gym."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from farm.trainers import asking
from tests.commands import Command
from tests.processes import PATIENCE
from tests.trainer_service import FIELDS, RIGHT, WRONG, service

APP = Path(__file__).parents[2] / "examples" / "rl" / "nemo_gym" / "app.py"


class Response(BaseModel):
    """The part of a model's response that the server reads."""

    output_text: str


class Request(BaseModel):
    """`BaseVerifyRequest` as NeMo-Gym has it."""

    responses_create_params: dict[str, Any]
    response: Response


class Answer(Request):
    """`BaseVerifyResponse` as NeMo-Gym has it."""

    reward: float
    mask_sample: bool = False
    failure_reason: str | None = None


class Config(BaseModel):
    """`BaseResourcesServerConfig`, of which the server needs nothing."""


class Server(BaseModel):
    """`SimpleResourcesServer`, as far as it makes the route."""

    config: Config

    def setup_webserver(self) -> FastAPI:
        app = FastAPI()
        app.post("/verify")(self.verify)  # type: ignore[attr-defined]
        return app


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the server."""
    base = ModuleType("nemo_gym.base_resources_server")
    base.__dict__.update(
        BaseResourcesServerConfig=Config,
        BaseVerifyRequest=Request,
        BaseVerifyResponse=Answer,
        SimpleResourcesServer=Server,
    )
    monkeypatch.setitem(sys.modules, "nemo_gym", ModuleType("nemo_gym"))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    spec = importlib.util.spec_from_file_location("lean_farm_app", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lean_farm_app", module)
    spec.loader.exec_module(module)
    return module


def verified(app: ModuleType, options: dict[str, Any], *answers: str) -> list[Any]:
    """Return what the server answers to these of a model's answers."""
    server = app.LeanFarm(config=app.LeanFarmConfig(farm=options)).setup_webserver()

    async def ask() -> list[Any]:
        found = []
        async with httpx.AsyncClient(transport=httpx.ASGITransport(server), base_url="http://gym") as client:
            for answer in answers:
                body = {"responses_create_params": {}, "response": {"output_text": answer}, **FIELDS}
                response = await client.post("/verify", json=body, timeout=60 * PATIENCE)
                assert response.status_code == 200, response.text
                found.append(response.json())
        await asking.close()
        return found

    return asyncio.run(ask())


def test_verdicts_are_rewards(farm: Command, tmp_path: Path, app: ModuleType) -> None:
    with service(farm, tmp_path) as served:
        right, wrong = verified(app, served.options, RIGHT, WRONG)
    assert (right["reward"], right["verdict"], right["mask_sample"]) == (1.0, "proved", False)
    assert (wrong["reward"], wrong["verdict"], wrong["mask_sample"]) == (0.0, "rejected", False)
    assert wrong["feedback"]
    assert wrong["error_feedback"] in wrong["correction_prompt"]
    assert wrong["formal_statement"] == FIELDS["formal_statement"]


def test_a_farm_that_is_gone_is_null(farm: Command, tmp_path: Path, app: ModuleType) -> None:
    with service(farm, tmp_path) as served:
        served.kill()
        (unknown,) = verified(app, {**served.options, "deadline": 2.0}, RIGHT)
    assert unknown["reward"] is None
    assert (unknown["mask_sample"], unknown["verdict"]) == (True, "unknown")
    assert unknown["failure_reason"]
