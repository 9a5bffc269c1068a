"""Seal step: from the bytes of a compiled module to what is known of it, and to a module of our own.

It is called in a process that has Lean's library in it and runs nothing of a submission: a fork of an image
that has imported the header. It reads the submission's module as data, builds a module of its own from what
it has understood, audits that, and has Lean's kernel check it. Nothing here opens a file or starts anything.
"""

from __future__ import annotations

from farm_workers.seal.above import Kernel, taken_in
from farm_workers.seal.sealing import Request, seal

__all__ = ["Kernel", "Request", "seal", "taken_in"]
