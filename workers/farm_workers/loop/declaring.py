"""The worker's answers about declarations: takes requests from Redis, and has a process read the modules."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import cast

from farm.declarations import ANSWER_SECONDS, Asked, requests_of
from farm.log import logger
from farm.redis_client import client_of, expiring
from farm_workers import audit
from farm_workers.environments.lean_environment import LeanEnvironment, own_folder
from farm_workers.loop.context import Context
from farm_workers.loop.requests import take_all

_SOCKET_SECONDS, _WAIT_SECONDS = 5.0, 1
#: The names of a library of hundreds of thousands of declarations are read within this time.
_READING_SECONDS = 300.0

_log = logger(__name__)


class Declaring:
    """Answers one request after another, beside the checks of a worker.

    The names of each environment are kept in `home`, so that only the first answer reads its modules.
    """

    def __init__(self, context: Context, broker_url: str, home: Path) -> None:
        self._client = client_of(broker_url, answer_seconds=_SOCKET_SECONDS)
        self._context, self._folder = context, home / "declarations"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._take_all, name="declarations", daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Take no further request."""
        self._stopping.set()
        self._thread.join(2 * _WAIT_SECONDS)

    def _take_all(self) -> None:
        take_all(self._take_one, self._context, self._stopping, "declarations")

    def _take_one(self) -> None:
        served = {n: each for n, each in self._context.fit.items() if isinstance(each, LeanEnvironment)}
        if not served:
            self._stopping.wait(_WAIT_SECONDS)
            return
        places = list(map(requests_of, served))
        found = cast("tuple[bytes, bytes] | None", self._client.blpop(places, timeout=_WAIT_SECONDS))
        if found is None:
            return
        asked = cast("Asked", json.loads(found[1]))
        answer = self._answered(served[asked["environment"]], asked)
        with expiring(self._client, ANSWER_SECONDS, asked["answers"]) as pipeline:
            pipeline.rpush(asked["answers"], json.dumps(answer))

    def _answered(self, environment: LeanEnvironment, asked: Asked) -> dict[str, object]:
        words = ["--kept", str(self._folder / f"{environment.digest}.tsv"), "--most", str(asked["most"])]
        words += [f"--word={word}" for word in asked["words"]]
        command = audit.command(sys.executable, "listing", [*words, *map(str, _folders(environment))])
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=_READING_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            _log.warning("The declarations of %s cannot be read: %s", environment.name, error)
            return {"refused": f"the declarations of {environment.name} cannot be read; see its worker's log"}
        if ended.stderr:
            _log.info("Not all modules of %s can be read: %s", environment.name, ended.stderr[:1000])
        answer: dict[str, object] = json.loads(ended.stdout)
        return {"header": environment.header, **answer}


def _folders(environment: LeanEnvironment) -> list[Path]:
    """Return the folders with the environment's modules, and with those of its Lean."""
    own = own_folder(Path(environment.lean[0])) / "lib" / "lean"
    return [*map(Path, environment.lean_path), *([own] if own.is_dir() else [])]
