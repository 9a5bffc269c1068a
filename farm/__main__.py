"""Run the `farm` command with ``python -m farm``."""

from farm.cli.command import main

main()
