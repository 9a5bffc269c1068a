"""Takes the pictures of docs/use/page.md: ``python -m tests.ui.page_pictures``; needs Debian's chromium."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it

from playwright.sync_api import Browser, sync_playwright

from tests.ui.page_site import Seen, site

#: Where the pictures are.
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
#: The largest that a picture may be, in bytes.
LARGEST = 150_000


def main() -> None:
    """Take every picture anew."""
    PICTURES.mkdir(exist_ok=True)
    with site() as seen, sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        run = f"/runs/{seen.first}"
        _take(browser, seen, "/", "page-runs.png", height=620)
        _take(browser, seen, f"{run}?name=squares", "page-run.png", height=900)
        _take(browser, seen, f"{run}/0/1", "page-line.png", height=1250)
        _take(browser, seen, f"{run}/0/1", "page-line-phone.png", height=1100, width=390, scheme="dark")
        compared = f"/compare?one={seen.first}&other={seen.second}"
        _take(browser, seen, compared, "page-compare.png", height=900)


def _take(
    browser: Browser,
    seen: Seen,
    path: str,
    name: str,
    *,
    height: int,
    width: int = 1280,
    scheme: str = "light",
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.goto(seen.page("/sign-in"))
    page.fill("#token", seen.token)
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Runs')")
    page.goto(seen.page(path))
    page.screenshot(path=PICTURES / name)
    size = (PICTURES / name).stat().st_size
    assert size < LARGEST, f"{name} has {size} bytes"
    sys.stdout.write(f"{PICTURES / name}: {size} bytes\n")
    context.close()


if __name__ == "__main__":
    main()
