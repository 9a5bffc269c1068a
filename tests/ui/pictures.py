"""The pictures of the documents, drawn anew: `python -m tests.ui.pictures`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.bench.around.site import farm_at_work
from tests.ui import report_pages as pages

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

#: How much of a page a picture shows, and how large.
_WIDTH, _HEIGHT, _SCALE = 1180, 1240, 0.75


def report(target: Path) -> None:
    """Draw the top of a report on an evaluation beside an earlier one."""
    with tempfile.TemporaryDirectory(prefix="farm-pictures-") as name, farm_at_work() as farm:
        folder = Path(name)
        before, after = pages.two_models(farm, folder)
        page = pages.page(farm, folder / "a.html", after, "--by", "difficulty", "--against", before)
        with sync_playwright() as playwright:
            chromium = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            view = browser.new_page(
                viewport={"width": _WIDTH, "height": _HEIGHT},
                color_scheme="light",
                device_scale_factor=_SCALE,
            )
            view.goto(page.as_uri())
            view.screenshot(path=target)
            browser.close()


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, draw in (("report.png", report),):
        draw(PICTURES / name)
        sys.stdout.write(f"{PICTURES / name}: {(PICTURES / name).stat().st_size >> 10} KiB\n")


if __name__ == "__main__":
    main()
