"""Programs that look like elan, git and Lake as far as `farm environments add` uses them, with the real Lean.

What they print and where they put things follows elan's ``src/elan/toolchain.rs`` (a toolchain lies in
``ELAN_HOME/toolchains``, ``/`` and ``:`` of its name as ``--`` and ``---``; to install one again is an error;
it is unpacked beside and renamed), Lake's ``lake env``, and what Mathlib's ``lake exe cache get``
prints (``Cache/Requests.lean``). The "network" is a folder; a fault of it is a file in the folder ``faults``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from farm_workers.environments.lean_environment import LeanEnvironment

from tests.toolchains import CALL, script

VERSION = "v4.35.0"

_ELAN = """
echo "elan $*" >> "$root/calls"
test "$1 $2" = "toolchain install" || exit 64
folder=$ELAN_HOME/toolchains/$(echo "$3" | sed 's|/|--|; s|:|---|')
if test -d "$folder"; then echo "error: '$3' is already installed" >&2; exit 1; fi
echo "info: downloading component 'lean'"
if test -e "$root/faults/toolchain" || test "$3" != leanprover/lean4:v4.35.0; then
  echo "error: could not download nonexistent lean version \\`$3\\`" >&2; exit 1
fi
rm -rf "$folder.tmp"; mkdir -p "$ELAN_HOME/toolchains"
cp -a "$root/network/toolchain" "$folder.tmp"; chmod -R go-rwx "$folder.tmp"
mv "$folder.tmp" "$folder"
"""

_GIT = """
echo "git $*" >> "$root/calls"
for last; do :; done
if test -e "$root/faults/clone"; then
  mkdir -p "$last"; echo "fatal: unable to access 'https://github.com/': Could not resolve host" >&2; exit 128
fi
test "$1 $6" = "clone v4.35.0" || { echo "fatal: Remote branch $6 not found in upstream" >&2; exit 128; }
mkdir -p "$last"
echo leanprover/lean4:v4.35.0 > "$last/lean-toolchain"
echo '{"packages": [{"name": "batteries", "url": "https://example.org/batteries", "rev": "abc"}]}' \
  > "$last/lake-manifest.json"
"""

_PROXY = """
toolchain=$(sed 's|/|--|; s|:|---|' lean-toolchain)
exec "$ELAN_HOME/toolchains/$toolchain/bin/$(basename "$0")" "$@"
"""

_LAKE = """
modules=.lake/build/lib/lean
if test "$*" = "env printenv LEAN_PATH"; then echo "$modules"; exit; fi
echo "lake $*" >> "$root/calls"
mkdir -p "$modules"
case "$*" in
"exe cache get")
  printf 'Attempting to download 2 file(s)\\n'
  for module in Mathlib Extra; do
    test ! -e "$root/faults/cache" -o $module = Mathlib || {
      echo "uncaught exception: No space left on device (error code: 28)" >&2; exit 1; }
    while test -e "$root/faults/pause"; do echo waiting > "$root/paused"; sleep 0.05; done
    cp "$root/network/$module.olean" "$modules/$module.olean"
    printf '\\rDownloaded: 1 file(s) [attempted 1/2 = 50%%]'
  done
  printf '\\nCompleted successfully!\\n';;
"build Mathlib")
  test ! -e "$root/faults/build" || { echo "error: build failed" >&2; exit 1; }
  echo "Build completed successfully (2 jobs).";;
*) exit 64;;
esac
"""

_LEAN = """
prefix=$(dirname "$(dirname "$(readlink -f "$0")")")
test "$1" != --print-prefix || exec echo "$prefix"
export LEAN_PATH="$LEAN_PATH:$prefix/lib/lean"
exec '{python}' -I -S "$prefix/call.py" "$prefix/lib/lean/libleanshared.so" "$@"
"""


@dataclass(frozen=True)
class Lookalike:
    """A folder with the programs, a network that has one release, and what can go wrong with it."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def elan_home(self) -> Path:
        return self.folder / "elan"

    @property
    def toolchain(self) -> Path:
        """Where the toolchain lies once it is installed."""
        return self.elan_home / "toolchains" / f"leanprover--lean4---{VERSION}"

    @property
    def settings(self) -> dict[str, str]:
        """The variables of a command that is to find these programs and no others of their names."""
        system = f"{self.bin}:/usr/local/bin:/usr/bin:/bin"
        return {"PATH": system, "ELAN_HOME": str(self.elan_home)}

    @property
    def calls(self) -> list[str]:
        """What was run, in order: each program with its first words."""
        text = (self.folder / "calls").read_text() if (self.folder / "calls").exists() else ""
        return [" ".join(line.split()[:3]) for line in text.splitlines()]

    def fault(self, name: str) -> Path:
        """Let a step fail (clone, toolchain, cache, build) or stand still (pause) until the file is gone."""
        file = self.folder / "faults" / name
        file.touch()
        return file


def lookalike(folder: Path, core: LeanEnvironment) -> Lookalike:
    """Make the programs and the network in a folder; the network's Lean is the embedded one."""
    made = Lookalike(folder)
    (folder / "faults").mkdir(parents=True)
    network = folder / "network"
    _make_toolchain(network / "toolchain", core)
    for module, text in (("Extra", "import Init\n"), ("Mathlib", "import Extra\n")):
        _compile(network / "toolchain", network, module, text)
    root = f"root='{folder}'; umask 077"
    for name, body in (("elan", _ELAN), ("git", _GIT), ("lake", _PROXY), ("lean", _PROXY)):
        script(made.bin / name, root, body)
    script(network / "toolchain" / "bin" / "lake", root, _LAKE)
    return made


def _make_toolchain(folder: Path, core: LeanEnvironment) -> None:
    """Make a toolchain that works wherever it is put: the embedded Lean, and the core library as its Init."""
    library = folder / "lib" / "lean"
    library.mkdir(parents=True)
    for file in Path(core.lean[0]).parent.glob("lib*.so"):
        try:
            os.link(file, library / file.name)
        except OSError:  # another file system
            shutil.copy(file, library / file.name)
    shutil.copy(Path(core.lean_path[0]) / "Core.olean", library)
    (folder / "call.py").write_text(CALL)
    (folder / "share").mkdir()
    (folder / "share" / "library").symlink_to("../lib/lean")
    script(folder / "bin" / "lean", _LEAN.format(python=Path(sys.executable).resolve()))
    _compile(folder, library, "Init", "prelude\nimport Core\n")


def _compile(toolchain: Path, folder: Path, module: str, text: str) -> None:
    source = folder / f"{module}.lean"
    source.write_text(text)
    command = [toolchain / "bin" / "lean", "-R", folder, "-o", folder / f"{module}.olean", source]
    subprocess.run(command, check=True, env={"LEAN_PATH": str(folder), "PATH": os.defpath})
    source.unlink()
