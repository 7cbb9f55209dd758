"""The page that `fastprof report` writes, in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.generate import generate

import fastprof


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[fastprof.Profile, Path]:
    """A profile of a generated capture, and its page."""
    folder = tmp_path_factory.mktemp("page")
    generate(folder / "net.sqlite", 3000)
    profile = fastprof.open(folder / "net.sqlite", copies=True)
    profile.report().save(folder / "net.html")
    return profile, folder / "net.html"


def test_the_page_opens_from_disk(report: tuple[fastprof.Profile, Path], open_page: Any) -> None:
    page = open_page(report[1])
    assert page.title() == "net.sqlite · fastprof"
    assert page.locator("h1").inner_text() == "net.sqlite"
    assert page.locator("main section").count() >= 3
