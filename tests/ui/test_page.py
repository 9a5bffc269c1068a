"""The page in Chromium: by the keyboard alone, for who hears it, on a phone, and with hostile texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.ui.page_site import HOSTILE, Seen, site

PHONE, DESK = 390, 1280


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    with site() as seen:
        yield seen


@pytest.fixture(scope="module")
def chromium(program: Callable[[str], str]) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Tab:
    """A tab of a browser of its own, and all that it complained of, or asked others for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def walked(self, key: str, words: str) -> None:
        """Press a key until what has the focus says these words."""
        for _ in range(80):
            if re.search(words, self.page.evaluate(_FOCUSED)):
                return
            self.page.keyboard.press(key)
        pytest.fail(f"{words!r} cannot be reached by {key}")

    def entered(self, words: str, heading: str) -> None:
        """Follow a link, or press a button, by the keyboard, and wait for the page it leads to."""
        self.walked("Tab", words)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f"h1:has-text('{heading}')")


_FOCUSED = """() => {
    const it = document.activeElement;
    const name = it.getAttribute("aria-label") || it.textContent.trim() || it.labels?.[0]?.textContent;
    return `${it.tagName} ${name || ""}`;
}"""


def opened(chromium: Browser, seen: Seen, *, width: int = DESK, scheme: str = "light", **more: object) -> Tab:
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        **more,  # type: ignore[arg-type]
    )
    tab = Tab(context.new_page())
    own = urlsplit(seen.url).netloc
    tab.page.on("console", lambda said: tab.complaints.append(said.text) if said.type != "log" else None)
    tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.page.on(
        "request", lambda asked: tab.elsewhere.append(asked.url) if _is_elsewhere(asked.url, own) else None
    )
    return tab


def _is_elsewhere(url: str, own: str) -> bool:
    return not url.startswith("data:") and urlsplit(url).netloc != own


def signed_in(chromium: Browser, seen: Seen, **more: object) -> Tab:
    tab = opened(chromium, seen, **more)  # type: ignore[arg-type]
    tab.page.goto(seen.page("/sign-in"))
    tab.page.fill("#token", seen.token)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1:has-text('Runs')")
    return tab


def pages(seen: Seen) -> list[str]:
    run = f"/runs/{seen.first}"
    compared = f"/compare?one={seen.first}&other={seen.second}"
    return [
        *("/", run, f"{run}?state=proved", f"{run}/0/1", f"{run}/0/2", f"{run}/0/25", f"{run}/0/26"),
        *(f"{run}/problems", "/compare", compared, f"{compared}&by=problems", "/docs"),
    ]


def test_the_link_that_is_printed_signs_in_by_a_click(chromium: Browser, seen: Seen) -> None:
    tab = opened(chromium, seen)
    tab.page.goto(seen.link)
    tab.page.wait_for_selector("h1:has-text('Runs')")
    assert "code=" not in tab.page.url
    assert tab.page.evaluate("document.cookie") == ""
    assert (tab.complaints, tab.elsewhere) == ([], [])


@pytest.mark.parametrize("has_script", [True, False])
def test_everything_is_reached_by_the_keyboard(chromium: Browser, seen: Seen, has_script: bool) -> None:
    tab = opened(chromium, seen, java_script_enabled=has_script)
    if not has_script:
        tab.page.goto(seen.page("/sign-in"))
        tab.page.fill("#token", seen.token)
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("h1:has-text('Runs')")
        for path in pages(seen):
            answer = tab.page.goto(seen.page(path))
            assert answer is not None and answer.status == 200
        tab.page.goto(seen.page(f"/runs/{seen.first}"))
        tab.page.select_option("#state", "timeout")
        tab.page.click("form.filter button")
        tab.page.wait_for_url("**state=timeout**")
        assert set(tab.page.locator("table .chip .word").all_inner_texts()) == {"◷timeout"}
        return
    tab.page.goto(seen.page("/"))
    assert tab.page.evaluate(_FOCUSED).startswith("INPUT Token")
    tab.page.keyboard.type(seen.token)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1:has-text('Runs')")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate(_FOCUSED) == "A Skip to the content"
    tab.page.keyboard.press("Enter")
    tab.entered("^A prover-7b-step-2000", "step-2000")
    tab.entered("^A Line 1$", "Line 1")
    tab.entered("^A prover-7b-step-2000", "step-2000")
    tab.entered("^BUTTON Compare$", "Compare two runs")
    assert tab.page.locator("tr.differs").count() > 0
    tab.entered("^BUTTON Sign out$", "Sign in")
    assert (tab.complaints, tab.elsewhere) == ([], [])


def test_the_filter_shows_lines_without_a_reload_and_says_so(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    tab.page.goto(seen.page(f"/runs/{seen.first}"))
    tab.page.evaluate("window.isTheSame = true")
    tab.page.fill("#name", "gcd")
    tab.page.wait_for_selector("#said:has-text('4 shown')", state="attached")
    assert tab.page.locator("tbody tr").count() == 4
    assert tab.page.evaluate("window.isTheSame") is True
    assert "name=gcd" in tab.page.url
    assert (tab.complaints, tab.elsewhere) == ([], [])


def test_progress_goes_on_by_itself(chromium: Browser, seen: Seen) -> None:
    from tests.ui.page_site import judge

    tab = signed_in(chromium, seen)
    tab.page.goto(seen.page(f"/runs/{seen.second}"))
    assert "24 of 26" in tab.page.inner_text(".progress")
    judge(seen.farm, seen.second, 23)
    tab.page.wait_for_selector(".progress:has-text('25 of 26')", timeout=60_000)
    assert (tab.complaints, tab.elsewhere) == ([], [])


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_and_is_read_well(chromium: Browser, seen: Seen, width: int, scheme: str) -> None:
    tab = signed_in(chromium, seen, width=width, scheme=scheme)
    for path in pages(seen):
        tab.page.goto(seen.page(path))
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert tab.page.evaluate(_FAINT) == [], path
    assert (tab.complaints, tab.elsewhere) == ([], [])


# The contrast of texts as WCAG 2.2 computes it, success criterion 1.4.3; backgrounds here are opaque.
_FAINT = """() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const [x, y, z] = [r, g, b].map((v) => linear(v / 255));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ground = (it) => {
        for (; it; it = it.parentElement) {
            const found = parts(getComputedStyle(it).backgroundColor);
            if (found.length === 3 || found[3] > 0) return found;
        }
        return [255, 255, 255];
    };
    const faint = new Set();
    for (const it of document.querySelectorAll("body *")) {
        if (![...it.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
        if (!it.checkVisibility() || it.closest(".hidden, .skip, option, datalist")) continue;
        const [a, b] = [light(parts(getComputedStyle(it).color)), light(ground(it))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.add(`${it.className || it.tagName} ${contrast.toFixed(2)}`);
    }
    return [...faint];
}"""


def test_who_hears_the_page_finds_the_way(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    for path in pages(seen):
        tab.page.goto(seen.page(path))
        for landmark in ("header", "main", "nav[aria-label]"):
            assert tab.page.locator(landmark).first.is_visible(), (path, landmark)
        assert tab.page.locator("main").count() == 1
        levels = [int(level) for level in tab.page.evaluate(_HEADINGS)]
        assert levels[0] == 1 and levels.count(1) == 1, path
        assert all(after <= before + 1 for before, after in pairwise(levels)), path
        assert tab.page.evaluate(_UNNAMED) == [], path
        assert tab.page.get_attribute("html", "lang") == "en"
    assert (tab.complaints, tab.elsewhere) == ([], [])


_HEADINGS = "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((it) => it.tagName[1])"
_UNNAMED = """() => {
    const told = (it) => it.getAttribute("aria-label") || it.textContent.trim();
    const all = (words) => [...document.querySelectorAll(words)];
    const labelled = (it) => document.getElementById(it.getAttribute("aria-labelledby"));
    const ids = [...document.querySelectorAll("[id]")].map((it) => it.id);
    return [
        ...all("input:not([type=hidden]), select").filter((it) => !it.labels.length && !told(it)),
        ...all("a, button, summary, th").filter((it) => !told(it)),
        ...all("section").filter((it) => !labelled(it)),
        ...ids.filter((id, at) => ids.indexOf(id) !== at),
    ].map((it) => it.outerHTML || it);
}"""


def test_a_verdict_is_told_by_a_word_and_not_by_colour_alone(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    tab.page.goto(seen.page(f"/runs/{seen.first}"))
    words = {words.lstrip("✓✗◷▤!⊘▸… ") for words in tab.page.locator(".chip .word").all_inner_texts()}
    assert words == {"proved", "rejected", "timeout", "memory_limit", "judge_error", "queued"}


def test_hostile_texts_are_shown_as_text(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    visible = HOSTILE.replace("\u202e", r"\u202e").replace("\u2066", r"\u2066").replace("\u200b", r"\u200b")
    visible = visible.replace("\u200f", r"\u200f").replace("\x1b", r"\x1b")
    for path in pages(seen):
        tab.page.goto(seen.page(path))
        assert "taken" not in tab.page.title()
        assert tab.page.locator("img").count() == 0
        assert tab.page.locator("script:not([src])").count() == 0
    tab.page.goto(seen.page(f"/runs/{seen.first}/0/25"))
    assert visible in tab.page.inner_text("h1")
    assert visible in tab.page.inner_text("#L5")
    for note in (".note-error pre", ".note-goal pre"):
        assert tab.page.locator(note).first.inner_text() == visible
    assert (tab.complaints, tab.elsewhere) == ([], [])


def test_the_policy_stops_what_would_get_into_the_page(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    tab.page.evaluate(
        """() => {
            for (const words of ["<style>h1 { color: red }</style>", "<img src='http://127.0.0.2/'>"])
                document.body.insertAdjacentHTML("beforeend", words);
            const script = document.createElement("script");
            script.textContent = "document.title = 'taken'";
            document.body.append(script);
        }"""
    )
    tab.page.wait_for_timeout(300)
    assert tab.page.title() == "Runs · farm"
    assert len([words for words in tab.complaints if "Content Security Policy" in words]) == 3


def test_a_page_of_another_site_gets_nothing(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    stranger = seen.url.replace("127.0.0.1", "localhost")  # another site to the browser, and reachable
    tab.page.goto(f"{stranger}/page/sign-in")
    told = tab.page.evaluate(
        """async (url) => {
            const asked = (more) => fetch(url, {credentials: "include", ...more});
            const ask = (more) => asked(more).then((answer) => answer.status, () => "none");
            return [await ask({}), await ask({method: "POST", body: new URLSearchParams({csrf: "x"})})];
        }""",
        seen.page("/sign-out"),
    )
    assert told == ["none", "none"]
    tab.page.goto(seen.page("/"))
    assert tab.page.inner_text("h1") == "Runs"


@pytest.mark.parametrize(
    ("path", "row", "leads_to"),
    [
        ("/", ".cards .card", r"/page/runs/\w+$"),
        ("/runs/{run}", ".lines tbody tr", r"/page/runs/\w+/0/1$"),
        ("/runs/{run}/problems", "table tbody tr", r"/page/runs/\w+\?group="),
    ],
)
def test_a_whole_row_is_a_link(chromium: Browser, seen: Seen, path: str, row: str, leads_to: str) -> None:
    tab = signed_in(chromium, seen)
    tab.page.goto(seen.page(path.format(run=seen.first)))
    box = tab.page.locator(row).first.bounding_box()
    assert box is not None
    tab.page.mouse.click(box["x"] + box["width"] - 6, box["y"] + box["height"] - 6)
    tab.page.wait_for_url(re.compile(leads_to))


def test_recent_runs_are_offered_for_a_comparison(chromium: Browser, seen: Seen) -> None:
    tab = signed_in(chromium, seen)
    tab.page.goto(seen.page("/compare"))
    assert "prover-7b-step-2000.jsonl" in tab.page.inner_text("main")
    tab.page.click("text=Compare these two")
    tab.page.wait_for_selector("text=Lines whose verdict differs")
