"""From findings and rows of tables to the time line, and icicles from the kernels outwards."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.gpu.page import RECORDED

import fastprof
from browser.conftest import page_with
from fastprof.page.sections import answer, flame, tables, timeline

TRACES = RECORDED / "traces"
PARTS = "[aria-label='Order']"


@pytest.fixture(scope="module")
def cv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of ResNet-50 training on an H200."""
    path = tmp_path_factory.mktemp("finding") / "cv.html"
    profile = fastprof.open(TRACES / "cv.json.gz")
    sections = (answer.section, flame.section, timeline.section, tables.section)
    return page_with(path, profile, *sections)


def status(page: Any) -> str:
    return page.locator(".timeline-status").inner_text()


def selected(page: Any) -> str:
    return page.locator(".timeline-text").inner_text()


def test_a_finding_shows_its_idle_time(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    card = page.locator(".card", has_text="waits for the data loader")
    card.get_by_role("button", name="Show on the time line").click()
    assert selected(page).startswith("idle: data loading")
    assert page.locator(".timeline").bounding_box()["y"] < 200
    page.wait_for_timeout(300)  # the address is written a little later
    assert "find=data%20loading" in page.evaluate("location.hash")


def test_a_finding_shows_its_longest_kernel(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    card = page.locator(".card", has_text="without the tensor cores")
    card.get_by_role("button", name="Show on the time line").click()
    assert "conv2d" in selected(page) and " of " in status(page)
    begin, end = (
        float(page.locator(".timeline").get_attribute(f"data-{name}")) for name in ("from", "to")
    )
    length = float(page.locator(".timeline-detail").get_attribute("data-length"))
    assert end - begin == pytest.approx(5 * length, rel=0.01)


def test_a_row_shows_its_kernels(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    page.locator("#tables-table-1 tbody tr", has_text="batch_norm").first.click()
    assert "batch_norm" in selected(page)
    page.locator("#tables-table-2 tbody tr", has_text="bn1").first.locator("td").last.click()
    assert "bn1" in selected(page)


def test_tables_of_lanes_are_folded(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    folded = page.locator("#time-line details").first
    assert not folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert folded.locator("table").is_visible()


def test_paths_keep_their_ends(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    cell = page.locator("td.path").first
    style = cell.evaluate("each => getComputedStyle(each).direction")
    assert style == "rtl" and cell.locator("bdi").count() == 1


def test_an_icicle_of_kernels_has_the_same_time(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    area = page.locator(".flame-scroll")

    def all_time() -> str:
        area.focus()
        page.keyboard.press("ArrowDown")
        text = page.locator(".flame-detail").inner_text()
        page.keyboard.press("Escape")
        return text.splitlines()[1]

    before = all_time()
    page.locator(PARTS).select_option("inverse")
    assert all_time() == before
    area.focus()
    page.keyboard.press("ArrowDown")
    widest = page.locator(".flame-detail").inner_text().splitlines()
    kernels = fastprof.open(TRACES / "cv.json.gz").summary(by=["kernel"])
    most = next(iter(kernels.rows()))["kernel"]
    assert most in widest[0]


def test_the_icicle_of_a_comparison_tells_slower_from_faster(
    tmp_path: Path, open_page: Any
) -> None:
    lm, cv = TRACES / "lm.json.gz", TRACES / "cv.json.gz"
    data = fastprof.diff(lm, cv)
    path = tmp_path / "diff.html"
    data.page().save(path)
    page = open_page(path)
    key = page.locator(".flame-key").inner_text()
    assert "new" in key and "gone" in key
    page.locator(".flame-scroll").focus()
    page.keyboard.press("ArrowDown")
    before, after = data.found.wall_ns
    lines = page.locator(".flame-detail").inner_text().splitlines()
    shown = [float(part.split()[0]) for part in lines[2].split(": ")[0].split(" → ")]
    assert shown == pytest.approx(np.array([before, after]) / 1e6, rel=1e-3)


def test_a_page_of_some_work_says_so(tmp_path: Path, open_page: Any) -> None:
    profile = fastprof.open(TRACES / "cv.json.gz")
    path = tmp_path / "some.html"
    profile.report(where=["op=batch_norm"]).save(path)
    page = open_page(path)
    assert "only op=batch_norm in where time goes" in page.locator("ul.about").inner_text()
    rows = page.locator("#tables-table-1 tbody tr").all_inner_texts()
    assert rows and all("batch_norm" in row for row in rows)
    assert "125" in page.locator(".facts").first.inner_text()  # the step is the whole one


def test_a_link_keeps_the_icicle(cv: Path, open_page: Any) -> None:
    page = open_page(cv)
    page.locator(PARTS).select_option("inverse")
    page.locator(".flame input").fill("wgrad")
    page.locator(".flame-scroll").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    chart = page.locator(".flame")
    names = ("data-focus", "data-selected")
    before = [chart.get_attribute(name) for name in names]
    page.wait_for_timeout(300)
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready]", state="attached")
    assert [chart.get_attribute(name) for name in names] == before and all(before)
    assert page.locator(PARTS).input_value() == "inverse"
    assert page.locator(".flame input").input_value() == "wgrad"


def test_without_steps_the_time_line_opens_at_the_longest_gap(
    tmp_path: Path, open_page: Any
) -> None:
    profile = fastprof.open(TRACES / "small.json.gz").with_steps("none")
    page = open_page(page_with(tmp_path / "a.html", profile, timeline.section))
    chart = page.locator(".timeline")
    begin, end = (float(chart.get_attribute(f"data-{name}")) for name in ("from", "to"))
    gaps = next(iter(profile.idle(gaps=1).rows()), None)
    whole = next(iter(profile.steps().rows()))["wall_ns"]
    assert gaps is not None and 0 < end - begin < whole / 2


@pytest.mark.parametrize("width", [1280, 1920])
def test_no_table_is_wider_than_its_place(cv: Path, open_page: Any, width: int) -> None:
    page = open_page(cv, viewport={"width": width, "height": 900})
    regions = "[...document.querySelectorAll('.scroll')].filter(each => each.clientWidth)"
    assert page.evaluate(f"{regions}.length") > 5
    assert page.evaluate(f"{regions}.filter(e => e.scrollWidth > e.clientWidth + 1).length") == 0
