"""Writes Grafana's dashboards: `python -m docker.monitoring.dashboards`; with `--check`, only compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from docker.monitoring.dashboards.nodes import NODES
from docker.monitoring.dashboards.overview import OVERVIEW
from docker.monitoring.dashboards.run import RUN
from docker.monitoring.dashboards.timeouts import TIMEOUTS
from docker.monitoring.dashboards.trust import TRUST

FOLDER = Path(__file__).parents[1] / "grafana" / "dashboards"
BOARDS = (OVERVIEW, TIMEOUTS, TRUST, RUN, NODES)


def main(words: list[str]) -> int:
    """Write or compare the files, and return the exit status: 1 when a compared file is not up to date."""
    texts = {
        f"{board.uid}.json": json.dumps(board.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
        for board in BOARDS
    }
    if "--check" not in words:
        for name, text in texts.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    stale = sorted(name for name in texts.keys() | found.keys() if texts.get(name) != found.get(name))
    if stale:
        sys.stderr.write(f"not up to date: {', '.join(stale)}; run: python -m docker.monitoring.dashboards\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
