"""The page of a history in Chromium: a chart for each figure, its changes, its keys."""

import random
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.analysis.diff import store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.store import Baseline
from support.training_files import call, kineto

CHART = "#figures-chart-1"
HOSTILE = "<b>c</b>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 20 captures, of which the last 8 are slower."""
    folder, noise = tmp_path_factory.mktemp("history"), random.Random(1)
    for i in range(20):
        ns = int((50_000 if i < 12 else 60_000) * noise.uniform(0.99, 1.01))
        (side,) = sides_of([kineto(folder / "net.json", [[call("net:in", "mm", ns)]] * 3)])
        store.save(Baseline(side), folder / "perf.sqlite", {"commit": f"{HOSTILE}{i}"})
    fastprof.open_history(folder / "perf.sqlite").page().save(folder / "history.html")
    return folder / "history.html"


def test_a_chart_tells_the_capture_and_its_change(path: Path, open_page: Any) -> None:
    page = open_page(path)
    chart = page.locator(CHART)
    chart.scroll_into_view_if_needed()
    canvas = chart.locator("canvas")
    assert "20 captures, changes: 1." in canvas.get_attribute("aria-label")
    canvas.focus()
    page.keyboard.press("End")
    line = chart.locator(".selected")
    assert f"capture 20 (commit={HOSTILE}19)" in line.inner_text()
    for _ in range(7):
        page.keyboard.press("ArrowLeft")
    assert f"capture 13 (commit={HOSTILE}12)" in line.inner_text()
    assert " -> " in line.inner_text() and "+1" in line.inner_text()
    page.keyboard.press("Escape")
    assert line.inner_text() == ""


def test_the_tooltip_follows_the_pointer(path: Path, open_page: Any) -> None:
    page = open_page(path)
    chart = page.locator(CHART)
    chart.scroll_into_view_if_needed()
    box = chart.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 40)
    assert f"(commit={HOSTILE}19)" in page.locator(".tooltip").inner_text()


def test_every_figure_has_a_chart_and_the_captures_a_table(path: Path, open_page: Any) -> None:
    page = open_page(path)
    assert page.locator('[data-script="series"]').count() == 5
    assert "commit=<b>c</b>19" in page.locator("#captures table tbody tr").first.inner_text()
    assert page.locator(".card").count() == 1
