"""Stands in for a model: puts an answer into every line of a manifest.

python answer.py benchmark.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

#: A model would write these; which one a line gets depends on its sample.
ANSWERS = ("exact ⟨h.2, h.1⟩", "exact fun x => k (h x)", "exact True.intro")


def main() -> None:
    """Rewrite the manifest that the command line names."""
    path = Path(sys.argv[1])
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["generation"] = f"```lean4\n{ANSWERS[line['sample']]}\n```\n"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


main()
