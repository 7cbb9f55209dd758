"""The page of a run in Chromium: the map of waits, the ranks on one time line."""

from pathlib import Path
from typing import Any

import pytest
from bench.ranks import faults, programs, truth

from fastprof.page.run import page_of_run
from fastprof.ranks.run.pictures import slowest_step, step_waits
from fastprof.ranks.run.result import RunData
from support.simulated_ranks import read

LATE = 2
LEFT, AXIS = 96, 22  # of the time line, pixels
CHART = "#time-line-chart-1"
HEAT = "#waits-chart-1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """Four ranks, one of which loads data for 5 ms longer."""
    folder = tmp_path_factory.mktemp("run")
    truth.write(folder, programs.fsdp(4), 3, 1, [faults.Data(rank=LATE, ns=5_000_000)])
    return read(folder)


@pytest.fixture(scope="module")
def path(run: RunData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "run.html"
    page_of_run(run).save(path)
    return path


class Lanes:
    """The time line of an open page."""

    def __init__(self, page: Any) -> None:
        self.page, self.chart = page, page.locator(CHART)
        self.area = self.chart.locator(".timeline-scroll")
        self.area.scroll_into_view_if_needed()

    def data(self, name: str) -> float:
        self.page.wait_for_timeout(50)
        return float(self.chart.get_attribute(f"data-{name}"))

    @property
    def text(self) -> str:
        return self.chart.locator(".timeline-text").inner_text()

    def press(self, *keys: str) -> None:
        self.area.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def move(self, x: float, y: float) -> None:
        """Point at a place: x is a share of the lanes, y pixels below the axis."""
        box = self.chart.locator(".timeline-over").bounding_box()
        self.page.mouse.move(box["x"] + LEFT + x * (box["width"] - LEFT), box["y"] + AXIS + y)


def test_the_first_screen_names_the_late_rank(path, open_page):
    page = open_page(path)
    assert f"Rank {LATE} holds the others up" in page.locator("#answer p").first.inner_text()
    page.locator("button[data-find]").first.click()
    lanes = Lanes(page)
    assert f"rank {LATE} comes last" in lanes.text
    assert lanes.data("instance") > 0
    assert lanes.data("to") - lanes.data("from") > 5_000_000


def test_a_wait_is_shown_on_all_ranks(path, open_page):
    lanes = Lanes(open_page(path))
    box = lanes.chart.locator("select")
    box.select_option(label=box.locator("option", has_text="slowest").inner_text())
    lanes.move(0.2, 12)  # the time line of the first rank
    tooltip = lanes.page.locator(".tooltip").inner_text().splitlines()
    assert tooltip[0].startswith("wait: ") and f"rank {LATE} comes last" in tooltip[2]
    assert tooltip[-1].startswith("rank 0, at ")
    shown = lanes.data("instance")
    assert shown > 0
    lanes.page.mouse.down()
    lanes.page.mouse.up()
    lanes.page.mouse.move(2, 2)
    assert lanes.data("instance") == shown  # a click keeps it
    lanes.press("Escape")
    assert lanes.data("instance") == 0 and "Point at a call" in lanes.text


def test_a_click_on_its_name_closes_and_opens_a_rank(run, path, open_page):
    lanes = Lanes(open_page(path))
    assert lanes.data("open") == len(run)
    box = lanes.chart.locator(".timeline-over").bounding_box()
    lanes.page.mouse.click(box["x"] + 30, box["y"] + AXIS + 12)
    assert lanes.data("open") == len(run) - 1
    lanes.chart.get_by_role("button", name="Show only the ranks").click()
    assert lanes.data("open") == 0
    lanes.chart.get_by_role("button", name="Show the streams of all ranks").click()
    assert lanes.data("open") == len(run)


def test_keys_zoom_and_select(run, path, open_page):
    lanes = Lanes(open_page(path))
    length = lanes.data("to") - lanes.data("from")
    lanes.press("w")
    assert lanes.data("to") - lanes.data("from") == pytest.approx(length / 2)
    lanes.press("d", "0", "ArrowDown")
    assert "rank 0, at " in lanes.text
    first = lanes.text
    lanes.press("ArrowRight")
    assert lanes.text != first
    lanes.press("ArrowDown", "ArrowDown")
    assert "rank 1, at " in lanes.text
    lanes.press("Enter")
    assert lanes.data("open") == len(run) - 1
    assert "view" not in lanes.page.url
    lanes.press("w")
    lanes.page.wait_for_timeout(200)
    kept = lanes.data("from"), lanes.data("to")
    assert "time-line-chart-1.view" in lanes.page.url
    lanes.page.reload()
    lanes.page.wait_for_selector("html[data-ready]", state="attached")
    assert (lanes.data("from"), lanes.data("to")) == pytest.approx(kept, abs=1)


def test_a_cell_of_the_map_has_the_numbers_of_the_run(run, path, open_page):
    page = open_page(path)
    waits = step_waits(run)
    step = slowest_step(waits)
    canvas = page.locator(f"{HEAT} canvas").last
    canvas.focus()
    for _ in range(step):
        page.keyboard.press("ArrowRight")
    text = page.locator(f"{HEAT} .selected").inner_text()
    assert text.startswith(f"rank 0, step {waits.steps[step]}")
    assert f"waits {waits.wait[0, step] / 1e6:.4g} ms" in text
    assert f"longest for rank {LATE}" in text
    for _ in range(LATE):
        page.keyboard.press("ArrowDown")
    waited = f"{waits.waited_for[LATE, step] / 1e6:.4g} ms"
    assert f"others wait for it: {waited}" in page.locator(f"{HEAT} .selected").inner_text()


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("width", [1920, 1280, 400])
def test_charts_fit_the_width(theme, width, path, open_page):
    page = open_page(path, color_scheme=theme, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator(f"{HEAT} select").select_option("waited_for")
    for chart in (CHART, HEAT):
        shown = page.locator(f"{chart} canvas").first.bounding_box()
        assert shown["width"] > 100
    wide = page.locator(".scroll").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert wide == 0 or width < 1280
