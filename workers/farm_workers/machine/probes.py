"""Machine step, probes: judges lines that must be proved in an environment, such as a benchmark's references.

A library that is not the one of the dataset makes many of its proofs fail, each for a reason that looks like
the proof's own. Probes show it: they are judged once for each digest of the environment and each content of
the file. Failed probes are a warning and stop no worker, because the library is wrong and not the farm.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from farm.documents import decoded
from farm.errors import FarmError
from farm.files import write_whole
from farm.judging.assurance import Assurance
from farm.judging.verdict import Outcome, Verdict, judge
from farm.limits import Limits
from farm.log import logger
from farm.manifest.entries import read
from farm.manifest.entry import Entry
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.metrics import events

_log = logger(__name__)

#: How many failed probes are kept with their sentences, and how many of these are named.
MOST_KEPT, MOST_NAMED = 20, 3
#: How many probes are judged at once.
_AT_ONCE = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedProbe:
    """A probe that was not proved: its name and line, and the verdict's reason and sentence."""

    name: str
    line: int
    reason: str
    detail: str

    @property
    def words(self) -> str:
        """The probe in one sentence."""
        return f"{self.name or 'a line without a name'} (line {self.line}): {self.reason}: {self.detail}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """The result of an environment's probes.

    `probes` counts them, `proved` those that are proved, and `unjudged` those at which the farm failed.
    `failed` are the first of the others.
    """

    file: str
    probes: int
    proved: int
    unjudged: int = 0
    failed: tuple[FailedProbe, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether all probes are proved."""
        return self.proved == self.probes

    @property
    def rejected(self) -> int:
        """The number of probes that are not proved."""
        return self.probes - self.proved - self.unjudged

    @property
    def words(self) -> str:
        """The result in one sentence, which names the first failed probes."""
        if self.is_right:
            return f"all {self.probes} probes are proved"
        unjudged = f"; the farm failed at {self.unjudged} others" if self.unjudged else ""
        if not self.rejected:
            return f"{self.proved} of {self.probes} probes are proved{unjudged}"
        named = "; ".join(each.words for each in self.failed[:MOST_NAMED])
        return (
            f"{self.rejected} of {self.probes} probes are not proved, so its library is probably not the one "
            f"that {self.file} was made for: {named}{unjudged}"
        )


def probed(
    environment: LeanEnvironment, home: Path, checker: Checker, *, again: bool = False
) -> Probed | None:
    """Judge the probes of an environment, or return their known results; None if it has none.

    Raises ManifestError for a file that is no manifest, and FarmError if the result cannot be kept.
    """
    if not environment.probes:
        return None
    file = Path(environment.probes)
    kept = _kept(environment, file, home)
    found = None if again else _known(kept)
    if found is None:
        found = _judged(environment, file, checker)
        if not found.unjudged:
            _keep(kept, found)
    events.probed(environment.name, proved=found.proved, failed=found.rejected)
    return found


def tell(environment: LeanEnvironment, home: Path, checker: Checker) -> None:
    """Judge the probes of an environment that a worker serves, and log the result."""
    try:
        found = probed(environment, home, checker)
    except FarmError as error:
        _log.warning("The probes of %s could not be judged: %s", environment.name, error)
        return
    if found is not None:
        log = _log.info if found.is_right else _log.warning
        log("%s: %s", environment.name, found.words)


def _judged(environment: LeanEnvironment, file: Path, checker: Checker) -> Probed:
    entries = list(read(file))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        verdicts = list(pool.map(lambda entry: _verdict(entry, environment, checker), entries))
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    failed = [
        FailedProbe(name=entry.name, line=entry.line, reason=verdict.reason, detail=verdict.detail)
        for entry, verdict in zip(entries, verdicts, strict=True)
        if verdict.outcome not in (Outcome.PROVED, Outcome.JUDGE_ERROR)
    ]
    return Probed(
        file=str(file),
        probes=len(entries),
        proved=outcomes[Outcome.PROVED],
        unjudged=outcomes[Outcome.JUDGE_ERROR],
        failed=tuple(failed[:MOST_KEPT]),
    )


def _verdict(entry: Entry, environment: LeanEnvironment, checker: Checker) -> Verdict:
    limits = Limits() if entry.timeout is None else Limits(wall_seconds=entry.timeout)
    check = check_of(entry, limits, Assurance(tier=environment.tiers[0]))
    return judge(checker.check(check, environment))


def _kept(environment: LeanEnvironment, file: Path, home: Path) -> Path:
    """Return the file of a result, whose name has the environment's digest and that of the probes."""
    try:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise FarmError(
            f"{file}: {error.strerror}; correct `probes` in the table of {environment.name}"
        ) from error
    return home / "probes" / f"{environment.digest[:32]}-{content[:32]}.json"


def _known(path: Path) -> Probed | None:
    try:
        return decoded(Probed, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _keep(path: Path, found: Probed) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(asdict(found), indent=1) + "\n").encode())
    except OSError as error:
        raise FarmError(f"{path}: {error.strerror}") from error
