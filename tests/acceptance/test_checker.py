"""One program through Lean in a box to a verdict, on real Lean."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farm.errors import FarmError, SettingsError
from farm.job import Limits
from farm.verdict import Outcome, Reason, judge
from workers.canary import require_sound
from workers.checker import check
from workers.environments import LeanEnvironment, installed

CASES = Path(__file__).parents[1] / "cases" / "verdict"
PROGRAM = "prelude\nimport Core\ntheorem t : True := True.intro\n"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def core(shared_home: Path) -> LeanEnvironment:
    return installed(shared_home)["core"]


@pytest.mark.parametrize(
    "case", sorted(CASES.glob("*/*")), ids=lambda case: f"{case.parent.name}/{case.name}"
)
def test_a_case_gets_its_verdict(core: LeanEnvironment, case: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    limits = dataclasses.replace(Limits(), **expected.get("limits", {}))
    report = check((case / "program.lean").read_text(), core, limits)
    verdict = judge(report)
    assert (verdict.outcome, verdict.reason, verdict.proof_status) == (
        case.parent.name,
        expected["reason"],
        expected["proof_status"],
    ), report


def test_every_outcome_but_a_failure_of_the_farm_has_a_case() -> None:
    assert {case.name for case in CASES.iterdir()} == set(Outcome) - {Outcome.JUDGE_ERROR}


def test_messages_have_positions_in_the_program(core: LeanEnvironment) -> None:
    report = check("prelude\nimport Core\ntheorem ω : True :=\n  ωω\n", core, Limits())
    assert [(m.severity, m.line, m.column, m.end_column) for m in report.messages] == [("error", 4, 2, 4)]


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_text_that_lean_cannot_take_is_rejected_without_running_it(
    core: LeanEnvironment, character: str
) -> None:
    report = check(f"{PROGRAM}-- {character}", core, Limits())
    assert judge(report).reason is Reason.INVALID_TEXT


def test_the_facts_of_a_check_are_measured(core: LeanEnvironment) -> None:
    report = check(PROGRAM, core, Limits())
    assert report.exit_status == 0
    assert report.cpu_seconds > 0
    assert 0 < report.wall_seconds < 30
    assert report.isolation == "rlimit"


def test_a_cancelled_check_ends_and_is_no_verdict_about_the_proof(core: LeanEnvironment) -> None:
    endless = (CASES / "timeout" / "endless_instances" / "program.lean").read_text()
    cancel = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(check, endless, core, Limits(wall_seconds=60), cancel.is_set)
        cancel.set()
        assert judge(checking.result(30)).outcome is Outcome.JUDGE_ERROR


def test_checks_run_side_by_side(core: LeanEnvironment) -> None:
    wrong = "prelude\nimport Core\ntheorem t : False := True.intro\n"
    with ThreadPoolExecutor(4) as pool:
        reports = pool.map(lambda text: check(text, core, Limits()), [PROGRAM, wrong] * 4)
        assert [judge(r).reason for r in reports] == [Reason.OK, Reason.ERROR] * 4


def test_the_canaries_live_in_the_embedded_environment(core: LeanEnvironment) -> None:
    require_sound(core)


def test_an_environment_whose_modules_are_gone_is_not_fit_to_judge(
    core: LeanEnvironment, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, lean_path=(str(tmp_path),))
    with pytest.raises(FarmError, match="not fit to judge"):
        require_sound(broken)


@pytest.mark.parametrize("content", [None, b"", b"olean", b"x" * 4096])
def test_missing_and_corrupt_modules_are_the_farms_fault(
    core: LeanEnvironment, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "Core.olean").write_bytes(content)
    broken = dataclasses.replace(core, lean_path=(str(tmp_path),))
    verdict = judge(check(PROGRAM, broken, Limits()))
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BAD_ENVIRONMENT)


def test_a_lean_that_is_not_there_is_the_farms_fault(core: LeanEnvironment) -> None:
    broken = dataclasses.replace(core, lean=("/no/such/lean",))
    verdict = judge(check(PROGRAM, broken, Limits()))
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BOX_FAILED)


def test_the_core_library_is_built_once_and_its_digest_stays(
    shared_home: Path, core: LeanEnvironment
) -> None:
    compiled = Path(core.lean_path[0]) / "Core.olean"
    built = compiled.stat().st_mtime_ns
    assert installed(shared_home)["core"] == core
    assert compiled.stat().st_mtime_ns == built


def test_two_that_build_the_core_library_at_once_both_get_it_whole(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(installed, [tmp_path] * 2)
    assert first == second
    require_sound(first["core"])
    assert [p.name for p in (tmp_path / "environments").iterdir()] == [Path(first["core"].lean_path[0]).name]


def _stand_in(core: LeanEnvironment, folder: Path) -> Path:
    """Make the embedded Lean a program of its own, as a toolchain's is."""
    program = folder / "lean"
    program.write_text(
        "#!/bin/sh\n"
        'exec python3 -I -S -c \'import ctypes, sys; words = [w.encode() for w in ["lean", *sys.argv[2:]]]; '
        "sys.exit(ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL).lean_main(len(words), "
        f'(ctypes.c_char_p * (len(words) + 1))(*words, None)))\' {core.lean[0]} "$@"\n'
    )
    program.chmod(0o755)
    return program


def _environments_file(folder: Path, text: str) -> Path:
    file = folder / "environments.toml"
    file.write_text(text)
    return file


def test_a_configured_environment_checks_programs(
    shared_home: Path, core: LeanEnvironment, tmp_path: Path
) -> None:
    file = _environments_file(
        tmp_path,
        f'[environments.mine]\nlean = "{_stand_in(core, tmp_path)}"\nlean_path = ["{core.lean_path[0]}"]\n'
        'header = "prelude\\nimport Core\\n"\noptions = ["-DmaxRecDepth=600"]\n',
    )
    mine = installed(shared_home, file)["mine"]
    assert mine.toolchain == core.toolchain
    assert mine.digest != core.digest
    require_sound(mine)


def test_a_workspace_is_asked_for_its_search_path(
    shared_home: Path, core: LeanEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "built").mkdir(parents=True)
    lake = tmp_path / "lake"
    lake.write_text(f'#!/bin/sh\ntest "$*" = "env printenv LEAN_PATH" && echo built:{core.lean_path[0]}\n')
    lake.chmod(0o755)
    _stand_in(core, tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    file = _environments_file(tmp_path, f'[environments.mine]\nworkspace = "{workspace}"\n')
    mine = installed(shared_home, file)["mine"]
    assert mine.lean_path == (str(workspace / "built"), *core.lean_path)


def test_the_digest_follows_the_contents_of_the_modules(
    shared_home: Path, core: LeanEnvironment, tmp_path: Path
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    file = _environments_file(
        tmp_path,
        f'[environments.mine]\nlean = "{_stand_in(core, tmp_path)}"\nlean_path = ["{modules}"]\n',
    )
    digests = set()
    for content in (b"1", b"2", b"1"):
        (modules / "A.olean").write_bytes(content)
        digests.add(installed(shared_home, file)["mine"].digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("environments = 1", "expected tables"),
        ("[environments.a", "not TOML"),
        ("[environment.a]", "expected tables"),
        ("[environments.a]\nlaen = 'lean'", "unknown key 'laen'"),
        ("[environments.a]\nlean = 1", "must be a string"),
        ("[environments.a]\noptions = 'x'", "must be a list of strings"),
        ("[environments.a]\nlean = '/no/such/lean'", "no program '/no/such/lean'"),
        ("[environments.a]\nworkspace = '/no/such'", "no workspace"),
        ("[environments.a]\nworkspace = '/'\nlean_path = ['/']", "not both"),
        ("[environments.a]\nlean_path = ['relative']", "not an absolute path"),
    ],
)
def test_a_wrong_environments_file_is_refused_by_name(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        installed(tmp_path, _environments_file(tmp_path, text))


def test_an_environments_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="must name a readable file"):
        installed(tmp_path, tmp_path / "none.toml")
