"""The replay of what Lean itself compiled: the kernel accepts honest modules and refuses all others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from farm_workers.audit.declarations import Module, opened_module
from farm_workers.audit.names import parsed
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.replay import FOLDERS, command

from farm.limits import Limits
from tests.compiled_modules import CompiledModules, compiled_beside

Replay = Callable[..., subprocess.CompletedProcess[str]]
#: What begins a program that changes the replay before it runs.
OURS = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / 'workers')!r}); "
#: What is written over a word of a file: where, and what.
Change = tuple[int, int]

HONEST = {
    "theorem": "theorem t : 1 = 1 := rfl\n",
    "inductive": "inductive Tree (α : Type) : Type where | leaf | node : α → Tree α → Tree α → Tree α\n",
    "structure": "structure Point (α : Type u) where\n  mk ::\n  x : α\n  same : x = x\n",
    "mutual": (
        "mutual\n"
        "inductive Even : Nat → Prop where | zero : Even Nat.zero | succ : Odd n → Even (Nat.succ n)\n"
        "inductive Odd : Nat → Prop where | succ : Even n → Odd (Nat.succ n)\n"
        "end\n"
    ),
    "nested": "set_option genSizeOf false in\ninductive Rose where | node : List Rose → Rose\n",
    "private": "private theorem lemma : 1 = 1 := rfl\ntheorem t : 1 = 1 := lemma\n",
    "recursion": "def double : Nat → Nat | .zero => .zero | .succ n => .succ (.succ (double n))\n",
    "opaque": "opaque secret : Nat\ntheorem t : secret = secret := rfl\n",
    "universes": "theorem t {α : Sort u} {β : Sort v} (f : α → β) : f = fun x => f x := rfl\n",
    "literals": 'theorem t : 2 + 3 = 5 := rfl\ndef text : String := "text"\n'
    "def big : Nat := 340282366920938463463374607431768211456\n",
}


@pytest.fixture(scope="module")
def replay(core: LeanEnvironment) -> Replay:
    """Replay a module in a process that is given nothing of this one's environment."""

    def replay(
        module: Path, *, library: str = "", path: tuple[str, ...] = core.lean_path, first: str = ""
    ) -> subprocess.CompletedProcess[str]:
        words = command(sys.executable, Path(library or core.lean[0]), path, module)
        words = [first + word if word.startswith("import sys;") else word for word in words]
        return subprocess.run(words, env={}, capture_output=True, text=True, timeout=100, check=False)

    return replay


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Change words of a compiled module, which stays a file that can be read."""

    def changed(module: Path, change: Callable[[Module], Iterator[Change]]) -> Path:
        data = bytearray(module.read_bytes())
        with opened_module(module) as opened:
            changes = list(change(opened))
        assert changes
        for place, value in changes:
            assert int.from_bytes(data[8 * place : 8 * place + 8], "little") != value
            data[8 * place : 8 * place + 8] = value.to_bytes(8, "little")
        (tmp_path / "Changed.olean").write_bytes(data)
        return tmp_path / "Changed.olean"

    return changed


def value_of(module: Module, name: str) -> int:
    """Return the word at which what a constant consists of begins: header, name and type, then the rest."""
    return module.olean.object(module.names[parsed(name)], 0)


def accepted(said: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert (said.returncode, said.stderr) == (0, "")
    facts: dict[str, object] = json.loads(said.stdout)
    assert facts["accepted"] is True
    return facts


def refused(said: subprocess.CompletedProcess[str]) -> str:
    assert said.returncode == 1, said.stderr
    facts = json.loads(said.stdout)
    assert facts["accepted"] is False
    assert len(facts["what"]) <= 500
    return str(facts["what"])


def failed(said: subprocess.CompletedProcess[str]) -> str:
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.count("\n") == 1
    return said.stderr


# What the kernel accepts.


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_an_honest_module_is_accepted(text: str, compiled: CompiledModules, replay: Replay) -> None:
    module = compiled(text)
    with opened_module(module) as opened:
        number = len(opened.names)
    facts = accepted(replay(module))
    assert facts["constants"] == number - len(facts.get("skipped", []))  # type: ignore[arg-type]
    assert facts["constants"]


def test_a_module_without_constants_is_accepted(compiled: CompiledModules, replay: Replay) -> None:
    assert accepted(replay(compiled(""))) == {"accepted": True, "constants": 0}


def test_what_is_unsafe_is_named(compiled: CompiledModules, replay: Replay) -> None:
    module = compiled("unsafe def Loop.endless (n : Nat) : Nat := endless n\ntheorem t : 1 = 1 := rfl\n")
    assert accepted(replay(module)) == {"accepted": True, "constants": 1, "skipped": ["Loop.endless"]}


def test_the_core_library_is_accepted(core: LeanEnvironment, replay: Replay) -> None:
    (module,) = Path(core.lean_path[0]).glob("*.olean")
    facts = accepted(replay(module))
    assert facts["constants"] > 2000  # type: ignore[operator]
    assert len(facts["skipped"]) == 20  # type: ignore[arg-type]


def test_a_box_that_shows_nothing_else_is_enough(
    compiled: CompiledModules, core: LeanEnvironment, isolation: Isolation
) -> None:
    module = compiled(HONEST["private"])
    run = box.run(
        command(python(), Path(core.lean[0]), core.lean_path, module),
        isolation=isolation,
        limits=Limits(wall_seconds=60, cpu_seconds=60, memory_mib=256),
        environment={},
        visible=(*FOLDERS, *core.folders, module),
    )
    assert (run.box_error, run.limit, run.exit_status, run.stderr) == (None, None, 0, b"")
    assert json.loads(run.stdout) == {"accepted": True, "constants": 2}


# What the kernel refuses.


def test_what_lean_was_told_not_to_check_is_refused(compiled: CompiledModules, replay: Replay) -> None:
    module = compiled("set_option debug.skipKernelTC true\ntheorem bad : 1 = 2 := by decide +kernel\n")
    assert "(kernel) application type mismatch" in refused(replay(module))


def test_the_proof_of_another_theorem_is_refused(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    module = compiled("theorem good : 1 = 1 := rfl\ntheorem wrong : 2 = 2 := rfl\n")
    accepted(replay(module))

    def change(module: Module) -> Iterator[Change]:
        proof = module.olean.words[value_of(module, "good") + 2]
        yield value_of(module, "wrong") + 2, proof

    said = refused(replay(changed(module, change)))
    assert said.startswith(
        "while replaying declaration 'wrong':\n(kernel) declaration type mismatch, 'wrong'"
    )


def test_another_statement_for_a_proof_is_refused(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    module = compiled("axiom wish : 1 = 2\ntheorem wrong : 2 = 2 := rfl\n")

    def change(module: Module) -> Iterator[Change]:
        olean = module.olean
        wish, wrong = (olean.object(value_of(module, name), 0) for name in ("wish", "wrong"))
        yield wrong + 3, olean.words[wish + 3]

    assert "(kernel) declaration type mismatch" in refused(replay(changed(module, change)))


def test_what_a_safe_constant_needs_is_not_passed_over(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    module = compiled("def one : Nat := 1\ntheorem t : one = one := rfl\n")

    def change(module: Module) -> Iterator[Change]:
        place = value_of(module, "one") + 1 + 4
        assert module.olean.words[place] & 0xFF == 1  # safe
        yield place, module.olean.words[place] & ~0xFF

    assert "(kernel) unknown constant 'one'" in refused(replay(changed(module, change)))


INDUCTIVE = "inductive Two : Type where | one : Nat → Two | two : Two\n"


@pytest.mark.parametrize(
    ("name", "field", "what"),
    [
        ("Two.one", 4, "Invalid constructor Two.one"),
        ("Two.rec", 5, "Invalid recursor Two.rec"),
        ("Two", 5, "Two: differs from the kernel's own result for the declaration"),
    ],
    ids=["constructor", "recursor", "inductive type"],
)
def test_a_wrong_number_is_refused(
    name: str, field: int, what: str, compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    def change(module: Module) -> Iterator[Change]:
        place = value_of(module, name) + 1 + field
        yield place, module.olean.words[place] + 2  # one more

    assert refused(replay(changed(compiled(INDUCTIVE), change))) == what


def test_two_constants_of_one_name_are_refused(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    def change(module: Module) -> Iterator[Change]:
        first, second = module.olean.array(module.olean.object(module.olean.root, 1), "names")
        yield second, module.olean.words[first]

    module = changed(compiled("theorem a : 1 = 1 := rfl\ntheorem b : 2 = 2 := rfl\n"), change)
    assert refused(replay(module)) == "two constants have the same name"


@pytest.mark.parametrize("shift", [0, 40, 44], ids=["hash", "a flag", "loose variables"])
def test_a_forged_cached_word_is_refused(
    shift: int, compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    """The kernel alone would believe it: it looks for no open variable where there is said to be none."""

    def change(module: Module) -> Iterator[Change]:
        proof = module.olean.object(value_of(module, "t"), 1)
        place = proof + 4  # behind the name, the type and the body of a function
        yield place, module.olean.words[place] ^ 1 << shift

    said = refused(replay(changed(compiled("theorem t : 1 = 1 → 1 = 1 := fun h => h\n"), change)))
    assert said == "t: an object's cached hash or flags differ from those that Lean computes"


COLLAPSE = """def c.{v} : Sort (v + 1) := Sort v
def into.{v} (α : Sort v) : c.{v} := α
def out.{v} (α : c.{v}) : Sort v := α
def code : Type := c.{0}
"""
#: What of a term's cached word says that there are universe parameters in it.
HAS_PARAMETERS = 1 << 43
UNEXAMINED = "import farm_workers.replay.replay as cached; cached.Cached.examine = lambda *_: None; "


def test_a_forged_flag_that_breaks_the_kernel_is_refused(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    """All universes go into `Type` and back; the kernel alone believes that `Sort v` has no parameter."""

    def change(module: Module) -> Iterator[Change]:
        olean = module.olean
        code = olean.words[value_of(module, "code") + 2]
        for name, part in (("into", 3), ("out", 2)):  # a function type: name, domain, body
            yield olean.object(olean.object(value_of(module, name), 0), 2) + part, code
        yield olean.object(value_of(module, "out"), 1) + 2, code
        sort = olean.object(value_of(module, "c"), 1)
        yield sort + 2, olean.words[sort + 2] & ~HAS_PARAMETERS

    module = changed(compiled(COLLAPSE), change)
    assert refused(replay(module)).startswith("c: an object's cached hash or flags")
    accepted(replay(module, first=OURS + UNEXAMINED))


def test_a_forged_hash_of_a_name_is_refused(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    def change(module: Module) -> Iterator[Change]:
        olean = module.olean
        place = olean.object(olean.object(value_of(module, "t"), 0), 0) + 3
        yield place, olean.words[place] ^ 1

    said = refused(replay(changed(compiled(HONEST["theorem"]), change)))
    assert "cached hash" in said


def test_a_constant_of_no_kind_is_refused(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    def change(module: Module) -> Iterator[Change]:
        place = module.names[parsed("t")]
        yield place, module.olean.words[place] | 8 << 56

    said = refused(replay(changed(compiled(HONEST["theorem"]), change)))
    assert said == "a constant of an unknown kind"


# What is no answer.


def test_nothing_but_unsafe_constants_is_no_answer(compiled: CompiledModules, replay: Replay) -> None:
    module = compiled("unsafe def endless (n : Nat) : Nat := endless n\n")
    assert "nothing was replayed" in failed(replay(module))


def test_a_part_of_a_module_is_no_answer(replay: Replay, core: LeanEnvironment, tmp_path: Path) -> None:
    part = compiled_beside(tmp_path / "Program.lean", "module\nprelude\n", core)
    assert "module system" in failed(replay(part))


def test_a_missing_import_is_no_answer(compiled: CompiledModules, replay: Replay, tmp_path: Path) -> None:
    assert "Core" in failed(replay(compiled(HONEST["theorem"]), path=(str(tmp_path),)))


def test_a_missing_module_is_no_answer(replay: Replay, tmp_path: Path) -> None:
    assert "missing.olean" in failed(replay(tmp_path / "missing.olean"))


def test_another_file_is_no_answer(replay: Replay) -> None:
    assert "invalid header" in failed(replay(Path(__file__)))


def test_a_library_without_lean_is_no_answer(
    compiled: CompiledModules, replay: Replay, core: LeanEnvironment
) -> None:
    module = compiled(HONEST["theorem"])
    other = Path(core.lean[0]).with_name("libInit_shared.so")
    assert "lean_initialize" in failed(replay(module, library=str(other)))
    assert "missing.so" in failed(replay(module, library="missing.so"))


def test_a_release_that_is_not_described_is_no_answer(compiled: CompiledModules, replay: Replay) -> None:
    module = compiled(HONEST["theorem"])
    none = "import farm_workers.binding.description as of; of.FOLDER = of.FOLDER / 'none'; "
    assert "no description of Lean 4.35" in failed(replay(module, first=OURS + none))


def test_a_crash_is_no_answer(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    def change(module: Module) -> Iterator[Change]:
        yield value_of(module, "t") + 2, 1 << 46

    said = replay(changed(compiled(HONEST["theorem"]), change))
    assert said.returncode < 0
    assert said.stdout == ""


def test_a_panic_is_no_answer(
    compiled: CompiledModules, replay: Replay, changed: Callable[..., Path]
) -> None:
    """A theorem among the inductive types of a family: Lean would go on with a constant of no meaning."""

    def change(module: Module) -> Iterator[Change]:
        olean = module.olean
        family = olean.object(value_of(module, "Two"), 3)
        yield family + 1, olean.words[olean.object(value_of(module, "t"), 0) + 1]

    said = replay(changed(compiled(INDUCTIVE + HONEST["theorem"]), change))
    assert said.returncode < 0
    assert said.stdout == ""
    assert "PANIC" in said.stderr
