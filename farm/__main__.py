"""The `farm` command and ``python -m farm``; names the extra to install if only the client is installed."""

from __future__ import annotations

import signal
import sys

from farm.exit_status import ExitStatus
from farm.extras import remedy
from farm.first_process import step_aside


def main() -> None:
    """Run the `farm` command, or exit with one line if the packages that it needs are missing."""
    step_aside()
    if sys.argv[1:2] == ["worker"]:
        # It lets them through when it has removed what dead workers left: its end must not prevent that.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        from farm.cli.command import main as command
    except ModuleNotFoundError as error:
        sys.stderr.write(f"farm: {remedy(error)}\n")
        raise SystemExit(ExitStatus.BAD_INPUT) from error
    command()


if __name__ == "__main__":
    main()
