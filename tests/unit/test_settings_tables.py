"""What is written from the declarations of settings agrees with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.settings import ALL, VARIABLES, WORKER, Variable
from tests.settings_tables import PAGE, SCHEMA, UNITS, WRITTEN, page, schema, units

MORE = {
    **VARIABLES,
    "FARM_SPEED": Variable(WORKER, "speed", "1", in_chart=True),
}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_file_agrees_with_the_declarations(path: Path) -> None:
    text = path.read_text()
    assert WRITTEN[path](text) == text, "run: make settings"


def test_a_new_setting_gets_a_row_and_a_place_in_the_chart() -> None:
    assert "| `FARM_SPEED` | speed | 1 | worker |\n" in page(PAGE.read_text(), MORE)
    added = schema(SCHEMA.read_text(), MORE).count("FARM_SPEED") - schema(SCHEMA.read_text()).count(
        "FARM_SPEED"
    )
    assert added == 1


def test_a_changed_sentence_reaches_the_rows_and_keeps_their_links() -> None:
    image = Variable(WORKER, "number of images at most", "2")
    row = next(
        line
        for line in page(PAGE.read_text(), {**VARIABLES, "FARM_IMAGES": image}).splitlines()
        if "_IMAGES`" in line
    )
    assert row.startswith("| `FARM_IMAGES` | number of [images](")
    assert row.endswith(" at most | 2 | worker |")


def test_the_settings_file_of_systemd_says_what_a_setting_means() -> None:
    home = Variable(ALL, "folder of `all`")
    assert "# Folder of all.\nFARM_HOME=" in units(UNITS.read_text(), {**VARIABLES, "FARM_HOME": home})
