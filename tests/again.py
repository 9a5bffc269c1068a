"""Run the tests that failed in the last run of pytest once more, alone: ``python -m tests.again``.

Continuous integration does so after a run with few failures: other users of its machine take processor time
from tests that wait for real servers. A test that fails twice fails. The exit status is that of pytest, and 1
without another try where more than `MOST` tests failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

#: With more failures than these, the change is at fault and not the machine.
MOST = 12

_FAILED = Path(__file__).parents[1] / ".pytest_cache/v/cache/lastfailed"


def main() -> int:
    """Run the failed tests of the last run, one after the other."""
    failed = sorted(json.loads(_FAILED.read_text())) if _FAILED.exists() else []
    if not 0 < len(failed) <= MOST:
        return 1
    sys.stdout.write(f"== Once more, alone: {len(failed)} that failed\n")
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
