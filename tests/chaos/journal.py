"""What was done to the farm and when, said at once and kept for the end."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something that was done to the farm, when it began and ended, in seconds since 1970."""

    name: str
    begun: float
    ended: float


@dataclass
class Journal:
    """The lines said so far, the disturbances, and what was found to be wrong."""

    quiet: bool = False
    lines: list[str] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _begun: float = field(default_factory=time.time)

    def say(self, words: str) -> None:
        line = f"{time.time() - self._begun:7.1f} s  {words}"
        self.lines.append(line)
        if not self.quiet:
            sys.stderr.write(f"{line}\n")

    def complain(self, words: str) -> None:
        self.complaints.append(words)
        self.say(f"WRONG: {words}")

    def done(self, name: str, begun: float) -> None:
        self.disturbances.append(Disturbance(name, begun, time.time()))
