"""Asks a served farm for verdicts until a file says stop: run by the Python of any release, with its client.

    python asking.py URL NAME TOLD STOP

Each line of TOLD is an item: its name, the verdict and reason that it must get, and those that it got.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from farm.client import Client

PROGRAMS = {
    ("proved", "ok"): "prelude\nimport Core\n\ntheorem {name} : True := True.intro\n",
    ("rejected", "error"): "prelude\nimport Core\n\ntheorem {name} : False := True.intro\n",
    ("rejected", "has_sorry"): "prelude\nimport Core\n\ntheorem {name} : False := sorry\n",
}


def main(url: str, name: str, told: str, stop: str) -> None:
    """Ask for one batch after the other."""
    batches = 0
    with Client(url, deadline=600) as client, Path(told).open("w", buffering=1) as file:
        while not Path(stop).exists():
            batches += 1
            asked = [(f"{name}_{batches}_{place}", verdict) for place, verdict in enumerate(PROGRAMS)]
            items = [
                {"name": each, "program": PROGRAMS[verdict].format(name=each)} for each, verdict in asked
            ]
            for (each, verdict), result in zip(asked, client.check_all(items), strict=True):
                found = [each, list(verdict), [result.verdict, result.reason]]
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
