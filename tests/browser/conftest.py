"""A headless Chromium that opens pages from disk, without a network."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.generate import generate

import fastprof
from fastprof.page.build import build
from fastprof.page.section import PageSource, SectionMaker

CHROMIUM = os.environ.get("FASTPROF_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]

OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright.

    Not for the session: while Playwright runs, so does its event loop in the main thread, and tests
    of other modules cannot use asyncio.run.
    """
    driver = pytest.importorskip("playwright.sync_api", reason="needs fastprof[browser]")
    if CHROMIUM is None:
        pytest.skip("needs chromium in PATH, or FASTPROF_CHROMIUM")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[fastprof.Profile, Path]:
    """A generated capture with steps, layers, lines and costs, and its page."""
    folder = tmp_path_factory.mktemp("page")
    generate(folder / "net.sqlite", 3000)
    profile = fastprof.open(folder / "net.sqlite", copies=True)
    profile.report().save(folder / "net.html")
    return profile, folder / "net.html"


def page_with(path: Path, profile: fastprof.Profile, *sections: SectionMaker) -> Path:
    """Write a page with some sections only, which is drawn sooner; returns its path."""
    source = PageSource(profile)
    path.write_text(build(path.stem, [], [section(source) for section in sections]), "utf-8")
    return path


class Pages:
    """Pages that are open. Those of plain options are used again: a process costs half a second."""

    def __init__(self, browser: Any) -> None:
        self.problems: list[str] = []
        self._browser = browser
        self._free: dict[str, Any] = {}
        self._used: list[tuple[str, Any]] = []

    def open(self, path: Path, **options: Any) -> Any:
        """A page that has drawn its charts, which zoom at once; `options` of the context."""
        key = "" if "color_scheme" in options else repr(options)
        page = self._free.pop(key, None) or self._new(options)
        self._used.append((key, page))
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20_000, state="attached")
        return page

    def end_of_test(self) -> list[str]:
        """Close or clear the pages of a test; returns what they logged, raised or requested."""
        for key, page in self._used:
            if not key or key in self._free:
                page.context.close()
            else:
                page.goto("about:blank")
                page.mouse.move(0, 0)
                self._free[key] = page
        self._used.clear()
        problems, self.problems[:] = [*self.problems], []
        return problems

    def _new(self, options: dict[str, Any]) -> Any:
        problems = self.problems
        context = self._browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        )
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda each: each.type == "error" and problems.append(each.text))
        page.on("pageerror", lambda each: problems.append(str(each)))
        page.on("dialog", lambda each: problems.append(f"dialog: {each.message}"))
        page.on("request", lambda each: _is_external(each.url) and problems.append(each.url))
        return page


@pytest.fixture(scope="module")
def _pages(browser: Any) -> Pages:
    return Pages(browser)


@pytest.fixture
def open_page(_pages: Pages) -> Iterator[OpenPage]:
    """open_page(path, **options of the context): a page that has drawn its charts.

    Fails if the page logs an error, raises one, or requests anything.
    """
    yield _pages.open
    assert _pages.end_of_test() == []


def _is_external(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "about:"))
