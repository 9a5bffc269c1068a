"""Checking: compiles one program, audits its module, and reports the facts to the worker's loop."""
