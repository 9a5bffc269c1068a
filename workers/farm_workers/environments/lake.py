"""Environment step, by command: the commands of elan, git and Lake that install a Lean and build a workspace.

Sources: elan's README and ``src/elan/toolchain.rs`` (where a toolchain lies, and that installing one a second
time is an error), the chapters on elan and Lake of the Lean reference, ``Cache/README.md`` of Mathlib.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from farm.errors import FarmError, UsageError

MATHLIB = "https://github.com/leanprover-community/mathlib4"
_ORIGIN = "leanprover/lean4"
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:-rc\d+)?)", re.ASCII)
#: The number of last lines shown of a command that failed.
_LINES_SHOWN, _LONGEST_LINE = 15, 300


@dataclass(frozen=True, kw_only=True, slots=True)
class LakeCommand:
    """A command, the folder that it runs in, and its purpose, in words that follow "Step 1 of 4: "."""

    words: tuple[str, ...]
    folder: Path
    purpose: str

    @property
    def line(self) -> str:
        """The command, quoted for a shell."""
        return shlex.join(self.words)


def tag(version: str) -> str:
    """Return the release tag of a version such as 4.22.0 or v4.22.0-rc3; raises UsageError."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise UsageError(f"{version!r} is no version of Lean; give one such as v4.22.0")
    return f"v{found[1]}"


def toolchain_of(version: str) -> str:
    """Return elan's name of a release of Lean."""
    return f"{_ORIGIN}:{tag(version)}"


def toolchain_of_workspace(workspace: Path) -> str:
    """Return the toolchain named in the workspace's ``lean-toolchain``; raises FarmError."""
    file = workspace / "lean-toolchain"
    try:
        named = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FarmError(f"{file} cannot be read ({error}); is {workspace} a workspace of Lake's?") from error
    if not re.fullmatch(r"(?:[\w-]+/[\w-]+:)?[\w.-]+", named, re.ASCII):
        raise FarmError(f"{file} names no toolchain: {named[:100]!r}")
    return named if ":" in named else toolchain_of(named)


@dataclass(frozen=True, kw_only=True, slots=True)
class Elan:
    """The elan of this machine: its program, and its folder, where toolchains go."""

    program: str
    home: Path

    @classmethod
    def found(cls, environ: Mapping[str, str] = os.environ) -> Elan:
        """Return the elan on PATH or in ELAN_HOME; raises UsageError that says how to install it."""
        home = Path(environ.get("ELAN_HOME") or Path.home() / ".elan")
        program = shutil.which("elan", path=f"{environ.get('PATH', '')}{os.pathsep}{home / 'bin'}")
        if program is None:
            raise UsageError(f"elan is not installed: it is neither on PATH nor in {home / 'bin'}. {INSTALL}")
        return cls(program=program, home=home)

    def lean(self, toolchain: str) -> Path:
        """Return the path of a toolchain's Lean, whether or not it is installed."""
        folder = toolchain.replace("/", "--").replace(":", "---")
        return self.home / "toolchains" / folder / "bin" / "lean"

    def install(self, toolchain: str) -> LakeCommand:
        """Return the command that installs a toolchain, which fails if it is installed."""
        return LakeCommand(
            words=(self.program, "toolchain", "install", toolchain),
            folder=Path("/"),
            purpose=f"install {toolchain}",
        )


#: How to install elan where every user can read it, without a script from the network.
INSTALL = """\
Install it where every user can read it, and repeat this command:
    export ELAN_HOME=/opt/elan PATH=/opt/elan/bin:$PATH
    file=elan-$(uname -m)-unknown-linux-gnu.tar.gz
    curl -fLO https://github.com/leanprover/elan/releases/latest/download/$file
    tar -xzf $file && ./elan-init -y --no-modify-path --default-toolchain none
Without a network, bring an environment from another machine: farm environments add NAME --from BUNDLE"""


def clone_mathlib(version: str, folder: Path) -> LakeCommand:
    """Return the command that fetches the sources of a release of Mathlib into a new folder."""
    words = ("git", "clone", "--quiet", "--depth", "1", "--branch", tag(version), MATHLIB, str(folder))
    return LakeCommand(words=words, folder=Path("/"), purpose=f"fetch the sources of Mathlib {tag(version)}")


def fetch_modules(workspace: Path) -> LakeCommand:
    """Return the command that downloads the missing compiled modules of Mathlib."""
    return LakeCommand(
        words=("lake", "exe", "cache", "get"), folder=workspace, purpose="download its modules"
    )


def build_mathlib(workspace: Path) -> LakeCommand:
    """Return the command that compiles the modules missing in the download."""
    return LakeCommand(
        words=("lake", "build", "Mathlib"), folder=workspace, purpose="compile missing modules"
    )


def run(command: LakeCommand, elan: Elan | None, told: Callable[[str], None], *, held: int) -> None:
    """Run a command to its end, calling `told` with each line that it prints; raises FarmError when it fails.

    It inherits the descriptor `held` of a lock, which is so held until the command itself has ended.
    """
    end: deque[str] = deque(maxlen=_LINES_SHOWN)
    try:
        with subprocess.Popen(
            command.words,
            cwd=command.folder,
            env=_environment(elan),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(held,),
        ) as process:
            try:
                for line in _lines(process.stdout):
                    end.append(line[:_LONGEST_LINE])
                    told(line[:_LONGEST_LINE])
            except BaseException:
                process.terminate()
                raise
    except OSError as error:
        raise FarmError(
            f"`{command.line}` cannot be started in {command.folder}: {error.strerror}; is "
            f"{command.words[0]} installed and on PATH?"
        ) from error
    if process.returncode != 0:
        said = "".join(f"\n    {line}" for line in end) or " nothing"
        raise FarmError(
            f"`{command.line}` failed in {command.folder} with exit status {process.returncode}. "
            f"The last that it printed:{said}"
        )


def _environment(elan: Elan | None) -> dict[str, str]:
    """Return the variables of a command: elan is first on PATH, the folder decides the toolchain."""
    inherited = {name: value for name, value in os.environ.items() if name != "ELAN_TOOLCHAIN"}
    inherited["GIT_TERMINAL_PROMPT"] = "0"
    if elan is not None:
        inherited["ELAN_HOME"] = str(elan.home)
        inherited["PATH"] = os.pathsep.join(
            [str(Path(elan.program).parent), str(elan.home / "bin"), os.environ.get("PATH", os.defpath)]
        )
    return inherited


def _lines(output: IO[bytes] | None) -> Iterator[str]:
    """Yield the printed lines; a progress bar that redraws itself gives a line each time."""
    rest = b""
    while output is not None and (piece := os.read(output.fileno(), 65536)):
        *whole, rest = re.split(rb"[\r\n]+", rest + piece)
        yield from (line.decode(errors="replace").strip() for line in whole if line.strip())
    if rest.strip():
        yield rest.decode(errors="replace").strip()
