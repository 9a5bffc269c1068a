"""The commands beside `submit`: what they print, where, and with which exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from farm import embedded
from farm.assembly.program import AssemblyOptions, assemble
from farm.cli.doctor import Diagnosis, examine
from farm.connections import Connections
from farm.manifest.entries import read
from farm.settings import Settings
from tests.commands import ADMITTED, HEADER, PROGRAMS, PROVED, WRONG, Command, entry, lines, write
from tests.farms import CORE, Quiet

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = [PROVED, WRONG, ADMITTED]


@pytest.fixture(scope="module")
def run(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a finished run of three lines, in the session's farm."""
    path = tmp_path_factory.mktemp("run") / "three.jsonl"
    write(path, *(entry(kind, number) for number, kind in enumerate(KINDS, 1)))
    return str(farm.json("submit", path)["run"])


def program(kind: tuple[str, str]) -> bytes:
    return (HEADER + PROGRAMS[kind].format(n=1)).encode()


# farm check


@pytest.mark.parametrize(("kind", "status"), [(PROVED, 0), (WRONG, 4), (ADMITTED, 4)])
def test_a_program_on_standard_input_is_checked(farm: Command, kind: tuple[str, str], status: int) -> None:
    said = farm("check", "-", stdin=program(kind))
    assert said.returncode == status, said
    assert said.stdout.splitlines()[-1].startswith(f"{kind[0]} ({kind[1]})")
    assert said.stderr == ""


@pytest.mark.newcomer
def test_a_program_in_a_file_is_checked_and_messages_name_it(farm: Command, tmp_path: Path) -> None:
    path = tmp_path / "Wrong.lean"
    path.write_bytes(program(WRONG))
    said = farm("check", path)
    assert said.returncode == 4
    assert said.stdout.startswith(f"{path}:4:22: error: ")


def test_a_check_for_scripts_prints_one_object(farm: Command) -> None:
    said = farm("check", "-", "--json", stdin=program(WRONG))
    facts = json.loads(said.stdout)
    assert said.returncode == 4
    assert facts["schema"] == 1
    assert (facts["verdict"], facts["reason"], facts["proof_status"]) == ("rejected", "error", "error")
    assert [(m["severity"], m["line"], m["column"]) for m in facts["messages"]] == [("error", 4, 22)]


def test_a_check_needs_no_server(prepared: Path) -> None:
    said = Command({"FARM_HOME": str(prepared)})("check", "-", stdin=program(PROVED))
    assert said.returncode == 0, said.stderr
    assert embedded.status(prepared) is None


def test_the_example_in_the_help_of_check_runs_as_it_is_printed(farm: Command) -> None:
    helps = [farm.having(COLUMNS=columns)("check", "--help").stdout for columns in ("200", "80")]
    printed = [said.partition("Example: ")[2].splitlines() for said in helps]
    for example in {"\n".join(line.strip() for line in rows) for rows in printed}:
        ran = subprocess.run(
            ["sh", "-c", example],
            env={**farm.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert ran.returncode == 0, (example, ran)
        assert ran.stdout.splitlines()[-1].startswith("proved (ok)")


def test_a_check_that_the_farm_failed_has_an_exit_status_of_its_own(prepared: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # Lean may run as another user
    lean = tmp_path / "lean"
    lean.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        '--version) echo "Lean (version 4.35.0, commit eb6cafb7290e, Release)" ;;\n'
        f'--print-*) echo "{tmp_path}" ;;\n'
        "*) kill -9 $$ ;;\n"
        "esac\n"
    )
    lean.chmod(0o755)
    file = tmp_path / "environments.toml"
    file.write_text(f'[environments.broken]\nlean = "{lean}"\nlean_path = ["{tmp_path}"]\n')
    farm = Command({"FARM_HOME": str(prepared), "FARM_ENVIRONMENTS": str(file)})
    said = farm("check", "-", "--environment", "broken", "--tier", "audit", stdin=program(PROVED))
    assert said.returncode == 3, said
    assert said.stdout.splitlines()[-1].startswith("judge_error (killed)")


BAD_CHECKS = {
    "no such file": (("/nowhere/Proof.lean",), b"", ("/nowhere/Proof.lean", "give a Lean file")),
    "a folder": (("/",), b"", ("/: ", "give a Lean file")),
    "invalid UTF-8": (("-",), b"theorem \xff", ("byte 8", "save the file as UTF-8")),
    "an unknown environment": (("-", "--environment", "moon"), b"", ("'moon'", "core")),
    "a timeout of zero": (("-", "--timeout", "0"), b"", ("timeout", "above 0")),
    "a negative timeout": (("-", "--timeout", "-1"), b"", ("timeout", "above 0")),
    "no memory": (("-", "--memory-mib", "0"), b"", ("memory", "above 0")),
}


@pytest.mark.parametrize("what", BAD_CHECKS)
def test_a_check_that_cannot_be_made_is_bad_usage(farm: Command, what: str) -> None:
    arguments, stdin, says = BAD_CHECKS[what]
    said = farm("check", *arguments, stdin=stdin)
    assert (said.returncode, said.stdout) == (2, "")
    assert len(said.stderr.strip().splitlines()) == 1
    for words in says:
        assert words in said.stderr


# farm submit --dry-run

PROFILES = ["farm", "nemo-2025-11", "nemo-2025-08"]


def assembled(path: Path, options: AssemblyOptions) -> list[dict[str, object]]:
    """Return what `farm submit --dry-run` has to write, line by line."""
    return [
        {**before, "predicted_proof": assemble(made, options)[0].text}
        for before, made in zip(lines(path), read(path), strict=True)
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_assembling_sets_the_program_of_every_line_and_nothing_else(
    farm: Command, tmp_path: Path, profile: str
) -> None:
    source, target = EXAMPLES / "quickstart.jsonl", tmp_path / "assembled.jsonl"
    said = farm("submit", "--dry-run", source, "-o", target, "--profile", profile)
    assert said.returncode == 0, said.stderr
    assert said.stdout == ""
    expected = assembled(source, AssemblyOptions(profile=profile))
    assert lines(target) == expected
    assert [list(line) for line in lines(target)] == [list(line) for line in expected]
    refused = farm("submit", "--dry-run", source, "-o", target)
    assert (refused.returncode, "is there already; add --force" in refused.stderr) == (2, True)


def test_assembling_in_place_keeps_what_it_does_not_set(farm: Command, tmp_path: Path) -> None:
    source = EXAMPLES / "quickstart.jsonl"
    path = tmp_path / "a.jsonl"
    path.write_bytes(source.read_bytes())
    path.chmod(0o640)
    assert farm("submit", "--dry-run", path, "-o", path).returncode == 0
    assert lines(path) == assembled(source, AssemblyOptions())
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_options_of_the_assembly_reach_it(farm: Command, tmp_path: Path) -> None:
    generation = (
        "**MINE**\n```lean4\ntheorem t : True := by\n  trivial\n```\n"
        "```lean4\ntheorem t : True := by\n  exact True.intro\n```\n"
    )
    made = {"header": "h\n", "formal_statement": "theorem t : True := by\n", "generation": generation}
    source, target = write(tmp_path / "a.jsonl", made), tmp_path / "b.jsonl"
    flags = {
        (): {},
        ("--extract-code-mode", "first"): {"extract_code_mode": "first"},
        ("--no-restate-formal-statement",): {"restate_formal_statement": False},
        ("--no-strip-theorem-from-proof",): {"strip_theorem_from_proof": False},
        ("--final-answer-key", "**MINE**"): {"final_answer_key": "**MINE**"},
        ("--final-answer-key", ""): {"final_answer_key": ""},
    }
    (parsed,) = read(source)
    for words, options in flags.items():
        said = farm(
            "submit", "--dry-run", source, "-o", target, "--force", "--profile", "nemo-2025-11", *words
        )
        assert said.returncode == 0, said.stderr
        expected = assemble(parsed, AssemblyOptions(profile="nemo-2025-11", **options))[0].text
        assert lines(target)[0]["predicted_proof"] == expected, words


@pytest.mark.newcomer
def test_assembling_needs_no_server(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    assert (
        Command({"FARM_HOME": str(tmp_path / "home")})("submit", "--dry-run", path, "-o", path).returncode
        == 0
    )
    assert not (tmp_path / "home").exists()


def test_a_bad_line_leaves_the_file_as_it_was(farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(PROVED, 1), {"header": "h"})
    before = path.read_bytes()
    said = farm("submit", "--dry-run", path, "-o", path)
    assert said.returncode == 2
    assert f'{path}:2: field "formal_statement": missing' in said.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_several_manifests_do_not_fit_into_one_file(farm: Command, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", entry(PROVED, 1)) for name in "ab"]
    said = farm("submit", "--dry-run", *paths, "-o", tmp_path / "c.jsonl")
    assert said.returncode == 2
    assert "-o" in said.stderr
    assert not (tmp_path / "c.jsonl").exists()


@pytest.mark.parametrize("flags", [("--profile", "best"), ("--extract-code-mode", "middle")])
def test_a_wrong_option_of_the_assembly_writes_nothing(
    farm: Command, tmp_path: Path, flags: tuple[str, str]
) -> None:
    path = write(tmp_path / "a.jsonl", {"header": "h", "formal_statement": "s", "generation": "g"})
    before = path.read_bytes()
    said = farm("submit", "--dry-run", path, "-o", path, *flags)
    assert (said.returncode, said.stdout) == (2, "")
    assert flags[1] in said.stderr
    assert path.read_bytes() == before


# farm status, list, show


@pytest.mark.newcomer
def test_a_finished_run_says_what_its_verdicts_are(farm: Command, run: str) -> None:
    said = farm("status", run)
    assert said.returncode == 0
    assert said.stderr == ""
    assert "3 of 3 lines judged" in said.stdout
    for verdict, reason in KINDS:
        assert any(verdict in row and reason in row for row in said.stdout.splitlines())


def test_status_for_scripts(farm: Command, run: str) -> None:
    facts = farm.json("status", run)
    assert facts["schema"] == 1
    assert facts["run"] == run
    assert facts["statuses"] == {"done": 3}
    assert {(v["verdict"], v["reason"], v["lines"]) for v in facts["verdicts"]} == {(*k, 1) for k in KINDS}
    assert (facts["names"], facts["names_proved"]) == (3, 1)


def test_the_list_for_people_and_for_scripts_has_the_run(farm: Command, run: str) -> None:
    assert run in farm("status", "--runs").stdout
    facts = farm.json("status", "--runs")
    assert facts["schema"] == 1
    assert run in [each["run"] for each in facts["runs"]]
    assert len(farm.json("status", "--runs", "--most", 1)["runs"]) == 1


@pytest.mark.newcomer
def test_the_lines_of_a_run_are_shown_and_can_be_filtered(farm: Command, run: str) -> None:
    assert [name for name in ("t1", "t2", "t3") if name in farm("show", run).stdout] == ["t1", "t2", "t3"]
    for flags, names in (
        (("--verdict", "proved"), ["t1"]),
        (("--reason", "error"), ["t2"]),
        (("--reason", "error", "--reason", "has_sorry"), ["t2", "t3"]),
        (("--verdict", "proved", "--reason", "has_sorry"), ["t1", "t3"]),
        (("--status", "done"), ["t1", "t2", "t3"]),
        (("--status", "queued"), []),
    ):
        shown = [json.loads(row) for row in farm("show", run, *flags, "--json").stdout.splitlines()]
        assert [(each["schema"], each["name"]) for each in shown] == [(1, name) for name in names]


def test_no_more_lines_are_shown_than_asked_for_and_the_rest_is_mentioned(farm: Command, run: str) -> None:
    said = farm("show", run, "--most", "2")
    assert [name for name in ("t1", "t2", "t3") if name in said.stdout] == ["t1", "t2"]
    assert "More lines" in said.stderr
    assert "More lines" not in farm("show", run, "--most", "3").stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--verdict", "good"), "--verdict good: there is no such verdict; choose one of proved, disproved"),
        (("--verdict", "has_sorry"), "you may mean --reason has_sorry"),
        (("--reason", "timeout"), "you may mean --verdict timeout"),
        (("--status", "lost"), "choose one of queued, running, done, cancelled"),
        (("--manifest", "7"), "has no manifest 7; give one from 0 to 0"),
    ],
)
def test_lines_that_cannot_be_shown_are_bad_usage(
    farm: Command, run: str, options: tuple[str, ...], problem: str
) -> None:
    said = farm("show", run, *options)
    assert said.returncode == 2
    assert problem in said.stderr


@pytest.mark.parametrize(
    "text", ["nul \0", "lone \ud800", "colour \x1b[31m", "8 bit \x9b31m", "backwards \u202e"]
)
def test_what_a_terminal_would_obey_is_shown_as_text(quiet: Quiet, tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps({"name": text, "predicted_proof": text}) + "\n")
    run = quiet.farm.json("submit", path, "--no-wait")["run"]
    for options in ((), ("--line", "1")):
        said = quiet.farm("show", run, *options)
        assert said.returncode == 0, said.stderr
        assert not set(said.stdout) & set("\0\x1b\x9b\u202e\ud800")
    assert text.encode("unicode_escape").decode() in said.stdout


def test_one_line_is_shown_whole(farm: Command, run: str) -> None:
    shown = farm("show", run, "--line", 2).stdout
    assert "theorem t2 : False" in shown
    assert "4:22: error:" in shown
    assert "attempt 1" in shown


def test_one_line_for_scripts_has_its_program_messages_and_attempts(farm: Command, run: str) -> None:
    facts = farm.json("show", run, "--line", 2)
    assert facts["schema"] == 1
    assert (facts["line"], facts["name"], facts["status"]) == (2, "t2", "done")
    assert facts["predicted_proof"] == program(WRONG).decode().replace("t1", "t2")
    assert facts["farm"]["messages"][0]["severity"] == "error"
    assert [attempt["outcome"] for attempt in facts["attempts"]] == ["rejected"]


@pytest.mark.parametrize(
    "arguments", [("status", "zzzz"), ("show", "zzzz"), ("export", "zzzz"), ("show", "--line", "99")]
)
def test_what_is_not_there_is_bad_usage_and_says_where_to_look(
    farm: Command, run: str, arguments: tuple[str, ...]
) -> None:
    said = farm(*arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert "farm status --runs" in said.stderr or "farm show" in said.stderr


@pytest.mark.parametrize("command", ["status", "show", "export"])
def test_before_the_first_run_commands_say_how_to_make_one(quiet: Quiet, command: str) -> None:
    said = quiet.farm(command)
    assert said.returncode == 2
    assert "farm submit" in said.stderr


def test_a_list_of_no_runs_is_empty(quiet: Quiet) -> None:
    assert quiet.farm.json("status", "--runs")["runs"] == []


# farm doctor, farm down, farm db upgrade


def test_the_doctor_finds_every_part_working(farm: Command) -> None:
    facts = farm.json("doctor")
    assert facts["schema"] == 1
    parts = {part["part"]: part["ok"] for part in facts["parts"]}
    assert {"PostgreSQL", "Redis", "workers"} <= set(parts)
    assert all(parts.values())


def test_the_doctor_names_what_is_broken_without_a_password_and_still_looks_at_the_rest(quiet: Quiet) -> None:
    url = quiet.farm.settings["FARM_DATABASE_URL"].replace("farm@", "farm:hush@")
    farm = quiet.farm.having(FARM_DATABASE_URL=url, FARM_BROKER_URL="redis://:hush@127.0.0.1:1/0")
    said = farm("doctor", "--json")
    assert said.returncode == 1
    assert "hush" not in said.stdout + said.stderr
    parts = {part["part"]: part for part in json.loads(said.stdout)["parts"]}
    assert parts["PostgreSQL"]["ok"]
    assert not parts["Redis"]["ok"]
    assert "start it" in parts["Redis"]["words"]


def of_workers(quiet: Quiet) -> Diagnosis:
    """Return what the doctor says of workers, before it tries the Leans of this machine."""
    with closing(Connections(Settings.load(quiet.farm.settings))) as connections:
        return next(each for each in examine(connections) if each.part == "workers")


def test_the_doctor_fails_when_no_worker_was_heard_of_for_a_lease(quiet: Quiet) -> None:
    quiet.store.register([replace(CORE, name="old")])
    an_hour_ago = "UPDATE environments SET seen_at = now() - interval '1 hour'"
    with quiet.engine.begin() as connection:
        connection.exec_driver_sql(f"{an_hour_ago} WHERE name = 'old'")
    fresh = replace(quiet, farm=quiet.farm.having(FARM_LEASE_SECONDS="600"))
    assert of_workers(fresh).ok  # one of several is served
    with quiet.engine.begin() as connection:
        connection.exec_driver_sql(an_hour_ago)
    found = of_workers(fresh)
    assert not found.ok
    assert re.search(r"core \(Lean 4\.35\.0\), heard of 36\d\d s ago", found.words)
    assert "farm worker" in found.words


def test_down_stops_everything_and_may_be_said_twice(own_farm: Command) -> None:
    home = Path(own_farm.settings["FARM_HOME"])
    assert own_farm("status", "--runs").returncode == 0
    assert embedded.status(home) is not None
    first, second = own_farm("down"), own_farm("down")
    assert (first.returncode, first.stderr) == (0, "Stopped\n")
    assert (second.returncode, second.stderr) == (0, "Nothing was running\n")
    assert embedded.status(home) is None


def test_down_in_an_empty_home_leaves_it_empty(tmp_path: Path) -> None:
    said = Command({"FARM_HOME": str(tmp_path / "home")})("down")
    assert (said.returncode, said.stderr) == (0, "Nothing was running\n")
    assert not (tmp_path / "home").exists()


def test_the_database_is_brought_to_this_farms_revision(quiet: Quiet, empty_database_url: str) -> None:
    farm = quiet.farm.having(FARM_DATABASE_URL=empty_database_url)
    assert farm("db", "upgrade").returncode == 0
    assert farm.json("status", "--runs")["runs"] == []
    assert farm("db", "upgrade").returncode == 0
