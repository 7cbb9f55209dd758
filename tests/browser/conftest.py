"""A headless Chromium that opens pages from disk, without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.generate import generate

import fastprof

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


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """open_page(path, **options of the context): a page that has drawn its charts.

    Fails if the page logs an error, raises one, or requests anything.
    """
    problems: list[str] = []
    contexts = []

    def opened(path: Path, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda each: each.type == "error" and problems.append(each.text))
        page.on("pageerror", lambda each: problems.append(str(each)))
        page.on("dialog", lambda each: problems.append(f"dialog: {each.message}"))
        page.on("request", lambda each: _is_external(each.url) and problems.append(each.url))
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20_000, state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def _is_external(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "about:"))
