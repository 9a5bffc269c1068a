"""The `farm` command: each command parses, does one thing, and prints.

Data goes to stdout, talk to stderr. docs/reference/commands.md lists the exit statuses.
"""
