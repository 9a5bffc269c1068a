"""Audit step: what a compiled module holds, read as data, and whether it is a proof of what was asked.

Nothing here runs anything of the files it reads, and it needs nothing but the standard library: it can run in
a process of its own that is given no more than this package.
"""
