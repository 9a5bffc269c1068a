"""What fails in the farm is never a fault of a proof: descriptors, memory and files that are lacking."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.checker import Checker
from farm_workers.checking.sealing import require_memory
from farm_workers.checking.seals import Sealable, Sealed, Seals
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images
from farm_workers.sessions.session import Session, StepLimits

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.audit import Audit, Finding
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.limits import Limits
from farm.task import Fills, Task
from tests.acceptance.test_images import shell
from tests.commands import PROVED, entry
from tests.descriptors import descriptors_left
from tests.farms import Quiet, load
from tests.isolation_levels import Mark, isolated
from tests.processes import CODE, PATIENCE, Process, eventually, family, process
from tests.toolchains import script, toolchain

STATEMENT = "theorem t : 1 = 1 := "
LIMITS = Limits(wall_seconds=20.0 * PATIENCE)
#: A message of Lean's about an import that could not be read.
UNREAD = (
    '{"severity": "error", "pos": {"line": 1, "column": 0}, "endPos": null, "fileName": "<stdin>", '
    '"caption": "", "kind": "", "data": "failed to open a module: Too many open files"}'
)


def verdict(checker: Checker, environment: LeanEnvironment, way: str | None = None) -> Verdict:
    """Return the verdict on an honest proof."""
    check = Check.of(
        program=f"{environment.header}{STATEMENT}rfl\n",
        challenge=Challenge(program=f"{environment.header}{STATEMENT}sorry\n", name="t"),
        limits=LIMITS,
        assurance=Assurance(tier=Tier.KERNEL),
    )
    return judge(checker.check(check, environment, way=way))


def only_the_farm_failed(verdicts: list[Verdict]) -> None:
    """Fail where an honest proof was rejected, or where nothing was tried."""
    found = Counter(each.outcome for each in verdicts)
    told = [each.detail for each in verdicts if each.outcome not in (Outcome.PROVED, Outcome.JUDGE_ERROR)]
    assert not told, told
    assert found[Outcome.JUDGE_ERROR] > 0
    assert all(each.is_tried_again for each in verdicts if each.outcome is Outcome.JUDGE_ERROR)


def test_a_worker_short_of_descriptors_rejects_no_proof(checker: Checker, core: LeanEnvironment) -> None:
    assert verdict(checker, core).outcome is Outcome.PROVED
    found = []
    for left in range(36):
        with descriptors_left(left):
            found.append(verdict(checker, core))
    only_the_farm_failed(found)
    assert any(each.outcome is Outcome.PROVED for each in found)
    assert verdict(checker, core).outcome is Outcome.PROVED


@contextmanager
def limited(processes: list[Process], which: int, most: int) -> Iterator[None]:
    """Lower a limit of processes inside the block."""
    before = {}
    try:
        for each in processes:
            with suppress(ProcessLookupError):
                before[each.pid] = resource.prlimit(each.pid, which)
                resource.prlimit(each.pid, which, (most, before[each.pid][1]))
        yield
    finally:
        for pid, was in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, which, was)


#: Limits that an honest check would exceed, and that somebody gives an image at work.
LOWERED = {
    resource.RLIMIT_FSIZE: 512,
    resource.RLIMIT_CPU: 0,
    resource.RLIMIT_STACK: 1 << 16,
    resource.RLIMIT_AS: 1 << 30,
    resource.RLIMIT_NPROC: 1,
}


def test_an_image_short_of_something_rejects_no_proof(
    isolation: Isolation, tmp_path: Path, core: LeanEnvironment
) -> None:
    others = set(family(os.getpid()))  # such as this session's servers
    with Checker(isolation, home=tmp_path) as checker:

        def within(which: int, most: int) -> Verdict:
            assert verdict(checker, core).outcome is Outcome.PROVED
            of_the_image = [each for each in family(os.getpid()) if each not in others]
            assert of_the_image
            with limited(of_the_image, which, most):
                return verdict(checker, core)

        only_the_farm_failed([within(resource.RLIMIT_NOFILE, most) for most in range(9, 36, 6)])
        # An image whose other limits are lowered is replaced by one that has the worker's.
        found = [within(which, most) for which, most in LOWERED.items()]
        assert [each.reason for each in found] == [Reason.OK] * len(LOWERED), found


@contextmanager
def at_most(isolation: Isolation, more: int) -> Iterator[None]:
    """Let the group above all cells have so many `more` processes and threads than now, inside the block."""
    assert isolation.groups is not None
    folder = isolation.groups.folders["pids"]
    most = int((folder / "pids.current").read_text()) + more
    try:
        (folder / "pids.max").write_text(str(most))
        yield
    finally:
        (folder / "pids.max").write_text("max")


@pytest.fixture(scope="module")
def grouped(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    """A checker of its own with control groups, in which nothing runs beside its checks."""
    if isolation.groups is None:
        pytest.skip("without control groups no group refuses processes")
    with Checker(isolation, home=tmp_path_factory.mktemp("grouped")) as checker:
        yield checker


def asked(core: LeanEnvironment, number: int) -> dict[str, tuple[Check, str | None]]:
    """Return honest checks of several kinds with their ways; another number makes a new statement."""
    proof = Check.of(
        program=f"{core.header}{STATEMENT}by exact rfl\n",
        challenge=Challenge(program=f"{core.header}-- {number}\n{STATEMENT}sorry\n", name="t"),
        limits=LIMITS,
        assurance=Assurance(tier=Tier.KERNEL),
    )
    behind = "\n  exact h\n"
    draft = f"{core.header}{STATEMENT}by\n  have h : 1 = 1 := by sorry{behind}"
    program = draft.replace("sorry", "(\n  exact rfl\n)")
    filled = replace(proof, candidates=(replace(proof.candidates[0], program=program),))
    fills = Fills(start=draft.index("sorry"), tail=len(behind), text="sorry")
    return {
        "a proof": (proof, None),
        "forbidden names": (replace(proof, task=Task(forbid=("apply",))), None),
        "a fresh Lean": (proof, "cold"),
        "a hole": (replace(filled, task=Task(fills=fills)), None),
    }


def test_no_proof_is_rejected_where_a_group_above_refuses_processes(
    grouped: Checker, isolation: Isolation, core: LeanEnvironment
) -> None:
    found: dict[str, list[Verdict]] = {}
    for more in range(5):
        for name, (check, way) in asked(core, more).items():
            assert verdict(grouped, core).outcome is Outcome.PROVED  # its image is there
            with at_most(isolation, more):
                found.setdefault(name, []).append(judge(grouped.check(check, core, way=way)))
    for verdicts in found.values():
        only_the_farm_failed(verdicts)
        assert verdicts[-1].outcome is Outcome.PROVED, verdicts[-1]


def test_no_proof_is_rejected_where_its_seal_is_refused_a_process(
    grouped: Checker, isolation: Isolation, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Seals.seal

    def seal(seals: Seals, sealable: Sealable) -> Sealed:
        with at_most(isolation, 0):
            return real(seals, sealable)

    assert verdict(grouped, core).outcome is Outcome.PROVED
    monkeypatch.setattr(Seals, "seal", seal)
    only_the_farm_failed([verdict(grouped, core)])


def test_a_session_that_lacks_something_blames_no_program(
    grouped: Checker, isolation: Isolation, core: LeanEnvironment
) -> None:
    others = set(family(os.getpid()))
    program = f"{core.header}{STATEMENT}by sorry\n"
    with closing(Images(isolation, lean_image, most=1)) as images:

        def stepped() -> str:
            try:
                with closing(Session(program, core, images, box.never)) as session:
                    (found,) = session.step((0, ()), ["exact rfl"], StepLimits(seconds=LIMITS.wall_seconds))
            except (BoxFailed, LookupError):
                return "the farm failed"
            return found.outcome

        assert stepped() == "no_goals"
        found = []
        for more in range(4):
            with at_most(isolation, more):
                found.append(stepped())
        for most in (21, 33):
            of_the_image = [each for each in family(os.getpid()) if each not in others]
            with limited(of_the_image, resource.RLIMIT_NOFILE, most):
                found.append(stepped())
        assert set(found) == {"no_goals", "the farm failed"}, found
        assert stepped() == "no_goals"


def test_no_proof_is_rejected_where_a_neighbour_takes_all_processes(
    tmp_path: Path, core: LeanEnvironment, mark: Mark
) -> None:
    """Without control groups Linux counts the processes of all checks together."""
    starts_one = shell("sleep 0.02", ".ok .missing")
    bomb, starts = (
        Check.of(
            program=program,
            challenge=Challenge(program=f"{core.header}theorem t : True := sorry\n", name="t"),
            limits=replace(LIMITS, memory_mib=1 << 16),
            assurance=Assurance(tier=Tier.KERNEL),
        )
        for program in (
            shell(f"f() {{ f | f & {mark.sleep}; }}; f", ".ok .missing"),
            starts_one.replace("\ncheat!\n", "\n" + "cheat!\n" * 40),  # one after the other
        )
    )
    with isolated(tmp_path, "landlock") as isolation, Checker(isolation, home=tmp_path) as checker:

        def judged(check: Check) -> Verdict:
            return judge(checker.check(check, core))

        assert judged(starts).outcome is Outcome.PROVED
        with ThreadPoolExecutor(4) as pool:
            bombs = pool.submit(lambda: [judged(bomb) for _ in range(3)])
            honest: list[Verdict] = []
            while not bombs.done():
                honest += pool.map(judged, [starts] * 3)
        assert {each.reason for each in bombs.result()} == {Reason.PROCESS_LIMIT}
        told = [each for each in honest if each.outcome not in (Outcome.PROVED, Outcome.JUDGE_ERROR)]
        assert not told, told


def test_a_list_of_forbidden_tactics_that_cannot_be_written_rejects_no_proof(
    tmp_path: Path, core: LeanEnvironment
) -> None:
    """The file system of a check has room for its module and for no second file."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    check, _ = asked(core, 0)["forbidden names"]
    with small_disk(tmp_path / "disk") as disk, isolated(disk, "landlock") as isolation:
        with Checker(isolation, home=tmp_path) as checker:
            assert judge(checker.check(check, core)).reason is Reason.OK
            found = []
            for left in range(1, 5):
                with room_for_files(disk, left):
                    found.append(judge(checker.check(check, core)))
        only_the_farm_failed(found)
        assert found[-1].reason is Reason.OK, found


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Give a file system of its own that can hold a few files."""
    folder.mkdir()
    options = "size=16m,nr_inodes=64,mode=0755"
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=False)
    if made.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def room_for_files(disk: Path, number: int) -> Iterator[None]:
    """Leave room for so many more files in a file system inside the block."""
    fillers = [disk / f"filler{each}" for each in range(os.statvfs(disk).f_ffree - number)]
    for each in fillers:
        each.touch()
    try:
        yield
    finally:
        for each in fillers:
            each.unlink()


def test_memory_that_the_machine_refuses_is_no_limit_of_the_line(
    unconfined: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    """A Lean without memory has reached its limit only if this machine would give what the line allows."""
    made = toolchain(tmp_path / "toolchain", core)
    real = made.lean.rename(made.lean.with_name("real"))
    script(
        made.lean,
        "text=$(cat)",
        f"case $text in *sorry*) printf '%s\\n' \"$text\" | '{real}' \"$@\"; exit $? ;; esac",
        "echo 'INTERNAL PANIC: out of memory' >&2; exit 1",
    )
    visible = tuple(map(str, (made.folder, *made.visible)))
    environment = replace(core, digest="lacks memory", lean=(str(made.lean),), visible=visible)
    audit = Audit(accepted=False, findings=(Finding(word="kernel_memory", sentence=""),))
    assert verdict(unconfined, environment, "cold").reason is Reason.MEMORY_LIMIT
    require_memory(audit, LIMITS.memory_mib)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    with limited([process(os.getpid())], resource.RLIMIT_AS, mapped + (1 << 30)):
        found = verdict(unconfined, environment, "cold")
        with pytest.raises(BoxFailed, match="this machine refuses memory"):
            require_memory(audit, LIMITS.memory_mib)
    only_the_farm_failed([found])
    assert "this machine refuses memory below the limit of the check" in found.detail


def test_a_limit_of_the_worker_under_which_no_check_can_be_judged_is_named(
    tmp_path: Path, core: LeanEnvironment
) -> None:
    words, environ = [sys.executable, "-c", _IN_A_BOX, str(tmp_path)], {**os.environ, "PYTHONPATH": CODE}
    limits = (resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_AS, 4 << 30)
    for which, most in limits:
        command = [*words, str(which), str(most)]
        said = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
        assert f"is {most}, and a check needs" in said.stdout, said


_IN_A_BOX = """
import resource, sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import prepared
with prepared(Path(sys.argv[1]), most="rlimit") as isolation:
    which, most = map(int, sys.argv[2:])
    resource.setrlimit(which, (most, most))
    print(box.run(["true"], isolation=isolation, limits=Limits(), environment={}).box_error)
"""


@pytest.fixture
def unconfined(tmp_path: Path) -> Iterator[Checker]:
    """A checker whose processes may write wherever this one may."""
    with (
        isolated(tmp_path / "work", "rlimit") as isolation,
        Checker(replace(isolation, user=None), home=tmp_path) as checker,
    ):
        yield checker


def test_a_checker_that_rejects_once_and_not_again_failed_itself(
    unconfined: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    script = f"mkdir {tmp_path / 'once'} 2>/dev/null && exit 1; exit 0"
    other = KernelChecker(name="other", command=("/bin/sh", "-c", script), visible=())
    environment = replace(core, digest="rejects once", checkers=(other,))
    assert verdict(unconfined, environment).reason is Reason.OK
    assert (tmp_path / "once").exists()


def failing_once(folder: Path, core: LeanEnvironment) -> LeanEnvironment:
    """Return the embedded environment with a Lean that cannot import a header in its second run."""
    made = toolchain(folder / "toolchain", core)
    real = made.lean.rename(made.lean.with_name("real"))
    is_second = f"[ -e {folder}/first ] && mkdir {folder}/second 2>/dev/null"
    script(
        made.lean,
        f"if {is_second}; then cat >/dev/null; echo '{UNREAD}'; exit 1; fi",
        f"mkdir {folder}/first 2>/dev/null",
        f"exec '{real}' \"$@\"",
    )
    visible = tuple(map(str, (*core.visible, made.folder, *made.visible)))
    return replace(core, digest="fails once", lean=(str(made.lean),), visible=visible)


def test_imports_that_fail_once_and_not_again_are_no_error_of_the_program(
    unconfined: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    environment = failing_once(tmp_path, core)  # the header is read alone first
    assert verdict(unconfined, environment, "cold").reason is Reason.OK
    assert (tmp_path / "second").exists()


@pytest.mark.long
@pytest.mark.parametrize("kept", [True, False], ids=["lowered at work", "at its start"])
def test_a_worker_of_few_descriptors_proves_every_honest_line(
    quiet: Quiet, tmp_path: Path, kept: bool
) -> None:
    """It raises the soft limit that it starts with; a limit that is lowered later stays low."""
    prefix = ["/bin/sh", "-c", f'ulimit -S -n {_FEW_FILES}; exec "$@"', "sh"]
    run = load(quiet.store, tmp_path / "lines.jsonl", *(entry(PROVED, number) for number in range(_LINES)))
    farm = quiet.farm.having(FARM_CONCURRENCY="2")
    with farm.started(tmp_path / "worker", "worker", prefix=prefix) as worker:
        eventually(lambda: "Serving" in worker.said, seconds=60)
        with limited(family(worker.process.pid) if kept else [], resource.RLIMIT_NOFILE, _FEW_FILES):
            eventually(lambda: not quiet.ask(_UNFINISHED), seconds=300)
    found = Counter(quiet.ask("SELECT verdict FROM verdicts"))
    assert found == {"proved": _LINES}, (found, run)


_LINES, _FEW_FILES = 240, 400
_UNFINISHED = "SELECT 1 FROM checks WHERE status IN ('queued', 'running') LIMIT 1"
