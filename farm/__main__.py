"""Run the `farm` command with ``python -m farm``."""

from farm.cli import main

main()
