"""The processor time of a seal, and of its parts: ``python -m tests.bench.seal``.

Each seal is a fork of one image; what the fork itself takes is not counted.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from tests.fuzz.olean import CORE, LEAN, compiled
from tests.sealing import Image

_THEOREM = (
    "theorem t{0} (a b : Nat) : a + b + {0} = a + b + {0} ∧ (a = b → b = a) := ⟨rfl, fun h => h.symm⟩\n"
)
_HEADER = "prelude\nimport Core\n"
_GOAL = "theorem goal (n : Nat) : n = n := {}\n"
#: How many theorems a module has, and how often it is sealed.
SIZES = {5: 40, 500: 10}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiled(CORE.read_text(encoding="utf-8"), folder, "Core")
        for module, text in (("Header", ""), ("Challenge", _GOAL.format("sorry"))):
            compiled(_HEADER + text, folder, module)
        image = Image(LEAN, [str(folder)], folder / "Header.olean")
        try:
            for size, times in SIZES.items():
                theorems = "".join(map(_THEOREM.format, range(size - 1)))
                compiled(_HEADER + theorems + _GOAL.format("rfl"), folder)
                print(f"{size} theorems: {_measured(image, folder, times)}")
        finally:
            image.close()


def _measured(image: Image, folder: Path, times: int) -> str:
    """Return the median, and the least, of whole seals and of seals without the kernel."""
    found = []
    for replay in (True, False):
        took = []
        for _ in range(times):
            sealed = image.seal(
                folder / "Program.olean", folder / "Challenge.olean", target="goal", replay=replay
            )
            assert sealed["accepted"], sealed
            took.append(sealed["cpu_ms"])
        found.append(f"{statistics.median(took):.1f} ms (least {min(took):.1f})")
    return f"{found[0]}, without the kernel {found[1]}"


if __name__ == "__main__":
    main()
