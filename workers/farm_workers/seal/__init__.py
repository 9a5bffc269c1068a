"""Seal step: rebuilds a submission's compiled module, audits the result, and has Lean's kernel check it.

The package runs in a fork of an image that has imported the header: a process with Lean's library that runs
no code of a submission. It reads the submission's module as data and writes the parsed constants into a new
module, which it audits and gives to the kernel. The package opens no file and starts no process.
"""

from __future__ import annotations

from farm_workers.seal.above import Kernel, taken_in
from farm_workers.seal.sealing import SealRequest, seal

__all__ = ["Kernel", "SealRequest", "seal", "taken_in"]
