"""The page of `farm report` in a browser: it loads alone, fits a phone, and has hostile names as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.around.site import farm_at_work
from tests.evaluations import Evaluation, Given
from tests.ui import report_pages as pages

HOSTILE = (
    '</style></svg><script>document.title="owned"</script>',
    "<img src=http://127.0.0.1:9/x onerror=\"document.title='owned'\">",
    "{{ 7 * 7 }}\u202e\x1b[31m\ud800",
    "x" * 3000,
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The page on two runs together, by a field, beside a third, with every hostile name and value."""
    folder = tmp_path_factory.mktemp("pages")
    with farm_at_work() as farm:
        before, after = pages.two_models(farm, folder)
        lines = [
            ({**line, "name": HOSTILE[number // 2 % 4], "difficulty": HOSTILE[number % 4]}, verdict)
            for number, (line, verdict) in enumerate(Evaluation(problems=8, samples=2, seed=3).made())
        ]
        slow = [(line, verdict and Given(wall_seconds=29.0)) for line, verdict in lines]
        hostile = pages.loaded(farm, folder / "<b>.jsonl", [*slow[:-1], (lines[-1][0], None)])
        yield pages.page(
            farm, folder / "report.html", after, hostile, "--by", "difficulty", "--against", before
        )


@pytest.fixture(scope="module")
def browser(program: Callable[[str], str]) -> Iterator[Browser]:
    """Chromium; its own sandbox needs what a container may not have, and it opens nothing but these pages."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def requests() -> list[str]:
    return []


@pytest.fixture
def troubles() -> list[str]:
    return []


@pytest.fixture(params=[(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")], ids=str)
def view(
    request: pytest.FixtureRequest,
    browser: Browser,
    report: Path,
    requests: list[str],
    troubles: list[str],
) -> Iterator[Page]:
    """The page at a width and in a scheme of colours, with what it asks for and complains of."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("request", lambda asked: requests.append(asked.url))
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(report.as_uri())
    yield page
    context.close()


def test_the_page_loads_alone_and_without_a_complaint(
    view: Page, report: Path, requests: list[str], troubles: list[str]
) -> None:
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    assert troubles == []


def test_nothing_is_wider_than_the_window(view: Page) -> None:
    assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    outside = """
        [...document.querySelectorAll("body *")].filter(each =>
            !each.closest(".scroll, .hidden") && each.getBoundingClientRect().right > innerWidth + 1
        ).map(each => each.outerHTML.slice(0, 80))
    """
    assert view.evaluate(outside) == []


def test_hostile_names_are_text(view: Page) -> None:
    assert view.title().startswith("Runs ")
    assert view.locator("script, img, iframe, object, b").count() == 0
    words = view.inner_text("body")
    assert "{{ 7 * 7 }}\\u202e\\x1b[31m\\ud800" in words
    assert '</style></svg><script>document.title="owned"</script>' in words


def test_headings_form_one_outline(view: Page) -> None:
    levels = view.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert view.get_by_role("main").count() == 1
    assert view.get_by_role("heading", name="pass@k", exact=True).count() == 1


def test_every_table_has_a_caption_and_named_columns(view: Page) -> None:
    assert view.get_by_role("table").count() >= 7
    bare = "all => all.filter(each => !each.caption || !each.querySelector('thead th[scope=col]')).length"
    assert view.eval_on_selector_all("table", bare) == 0
    rows = "all => all.filter(each => !each.querySelector('th[scope=row]')).length"
    assert view.eval_on_selector_all("tbody tr", rows) == 0


def test_every_plot_has_a_title_and_a_description(view: Page) -> None:
    plots = view.locator("svg[role=img]")
    assert plots.count() == view.locator("svg").count() >= 6
    named = """
        all => all.map(each => each.getAttribute("aria-labelledby").split(" ")
            .map(id => document.getElementById(id).textContent).filter(words => words.length > 3).length)
    """
    assert set(plots.evaluate_all(named)) == {2}
    ids = view.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
    assert len(ids) == len(set(ids))


def test_texts_stand_out_from_what_is_behind_them(view: Page) -> None:
    assert view.evaluate(_LEAST_CONTRAST) >= 4.5


#: WCAG 2.2, contrast of texts with the nearest opaque background: the least of the page.
_LEAST_CONTRAST = """
() => {
    const parts = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
        return .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
    };
    const behind = each => {
        for (; each; each = each.parentElement) {
            const colour = parts(getComputedStyle(each).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    let least = 21;
    for (const each of document.querySelectorAll("body *")) {
        const said = [...each.childNodes].some(part => part.nodeType === 3 && part.textContent.trim());
        if (!said || each.closest("title, desc")) continue;
        const style = getComputedStyle(each);
        const [a, b] = [light(parts(each.closest("svg") ? style.fill : style.color)), light(behind(each))];
        least = Math.min(least, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
    }
    return least;
}
"""
