"""The records of proof systems are the only places that know one from another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.machine.environments import configured

from farm.errors import SettingsError
from farm.kinds import Kind

ROOT = Path(__file__).parents[2]
FOREIGN = [kind for kind in Kind if kind is not Kind.LEAN]


def test_a_table_of_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "farm.toml"
    file.write_text('[environments.other]\nkind = "coq"\n')
    found = configured(tmp_path, file, cast("Isolation", None))["other"]
    with pytest.raises(SettingsError) as raised:
        found.find()
    words = ", ".join(f'"{kind}"' for kind in Kind)
    where = f"{file}: environment 'other': kind"
    assert str(raised.value) == (
        f"{where}: 'coq' is no proof system that this farm knows; write one of {words}"
    )


@pytest.mark.parametrize("kind", FOREIGN)
def test_only_the_folders_and_lists_of_systems_name_one(kind: Kind) -> None:
    names = re.compile(rf'Kind\.{kind.name}\b|"{kind}"')
    code = [path for side in ("farm", "workers") for path in (ROOT / side).rglob("*.py")]
    found = {path for path in code if names.search(path.read_text())}
    folder = kind.name.lower()
    assert {path.name for path in found if folder not in path.parts} <= {"known.py", "kinds.py"}
    assert len([path for path in found if path.name == "known.py"]) == 2
