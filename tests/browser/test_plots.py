"""The roofline, the memory curve and the waterfall: their numbers are those of the tables."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from bench.generate import generate

import fastprof
from browser.conftest import page_with
from fastprof.page.sections import memory, roofline
from support.hypothesis_profiles import some
from support.kineto_files import KinetoFile

HOSTILE = "</script><img src=x onerror=document.title='hit'>"
WIDTHS = (380, 900, 1600)


@pytest.fixture(scope="module")
def report(report: tuple[fastprof.Profile, Path]) -> tuple[fastprof.Profile, Path]:
    """A generated capture, and a page with its plots."""
    return report[0], page_with(
        report[1].with_name("plots.html"), report[0], roofline.section, memory.section
    )


def with_memory(folder: Path) -> fastprof.Profile:
    capture = KinetoFile().annotation(0, 40_000, HOSTILE)
    capture.op(0, 9_000, f"aten::{HOSTILE}").launch(5, 6, 1).kernel(10, 30_000, 1, HOSTILE)
    for time, size, total in ((0, 4_000_000, 5_000_000), (20_000, 1_000_000, 6_000_000),
                              (30_000, -4_000_000, 2_000_000)):  # fmt: skip
        sizes = {"Total Allocated": total, "Total Reserved": 8_000_000}
        capture.memory(time, size, **{"Device Type": 1, "Device Id": 0, "Addr": abs(size), **sizes})
    return fastprof.open(capture.write(folder / "x.json"), copies=True)


def number(ns: float) -> str:
    """A time in ns as the page shows it: four digits."""
    size, unit = next(each for each in ((1e6, "ms"), (1e3, "µs"), (1, "ns")) if abs(ns) >= each[0])
    return f"{float(f'{ns / size:.4g}'):g} {unit}"


def selected(page: Any, section: str, key: str, times: int = 1) -> str:
    """The text below the chart of a section after some presses of a key."""
    chart = page.locator(f"#{section} .chart").first
    chart.focus()
    for _ in range(times):
        page.keyboard.press(key)
    return str(chart.locator(".plot-text").inner_text())


def test_a_circle_has_the_numbers_of_its_row(report, open_page):
    profile, path = report
    page = open_page(path)
    rows = [row for row in profile.roofline().rows() if row["intensity"] and row["flop_per_s"]]
    rows.sort(key=lambda row: -row["gpu_ns"])
    for row in rows[:3]:
        text = selected(page, "roofline", "ArrowRight")
        assert text.startswith(f"{row['dir']} {row['op']} · {row['shape'][:40]}")
        assert f"{number(row['step_ns'])} per step, {number(row['gpu_ns'])} in all" in text
        assert f"{100 * row['peak_share']:.1f}% of the roof, bound by {row['bound']}" in text
        assert f"{number(row['lost_ns'])} lost" in text


def test_enter_marks_the_row_of_the_table(report, open_page):
    profile, path = report
    page = open_page(path)
    text = selected(page, "roofline", "ArrowRight", 2)
    page.keyboard.press("Enter")
    marked = page.locator("#roofline tr.marked")
    cells = marked.locator("td").all_inner_texts()
    assert text.startswith(f"{cells[0]} {cells[1]} · {cells[2][:40]}")
    row = list(profile.roofline().rows())[int(marked.get_attribute("data-row"))]
    assert [row["dir"], row["op"], row["shape"]] == cells[:3]


def test_hovering_a_circle_shows_its_text(report, open_page):
    page = open_page(report[1])
    page.locator("#roofline .u-over").scroll_into_view_if_needed()
    box = page.locator("#roofline .u-over").bounding_box()
    for step in range(60):  # across the plot at the heights of most circles
        for y in (0.1, 0.35, 0.6):
            page.mouse.move(box["x"] + box["width"] * step / 60, box["y"] + box["height"] * y)
            if page.locator(".tooltip:not([hidden])").count():
                shown = page.locator(".tooltip").inner_text()
                status = page.locator("#roofline .plot-text").inner_text()
                assert shown.splitlines()[:2] == status.split(" · ")[:2]
                return
    pytest.fail("no circle below the mouse")


def test_a_kind_can_be_hidden(report, open_page):
    page = open_page(report[1])
    first = page.locator("#roofline .plot-keys button").first
    kind = first.inner_text().split()[0]
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    row = selected(page, "roofline", "ArrowRight")
    page.keyboard.press("Enter")
    assert kind not in page.locator("#roofline tr.marked td").all_inner_texts(), row


def test_zoom_and_reset_change_the_axis(report, open_page):
    page = open_page(report[1])
    canvas = page.locator("#roofline canvas")
    page.locator("#roofline .chart").focus()
    drawn = "canvas => canvas.toDataURL()"
    before = canvas.evaluate(drawn)
    page.keyboard.press("+")
    page.wait_for_timeout(50)
    assert canvas.evaluate(drawn) != before
    page.keyboard.press("Escape")
    page.wait_for_timeout(50)
    assert canvas.evaluate(drawn) == before


def test_the_curve_of_memory_has_the_recorded_bytes(tmp_path, open_page):
    profile = with_memory(tmp_path)
    profile.report().save(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html")
    first = selected(page, "memory", "ArrowRight")
    assert first == "5 MB allocated · 8 MB reserved · 0 ns after the first event"
    assert selected(page, "memory", "ArrowRight").startswith("6 MB allocated")
    assert selected(page, "memory", "End") == (
        "2 MB allocated · 8 MB reserved · 30 µs after the first event"
    )
    assert selected(page, "memory", "p").startswith("6 MB allocated")
    assert "6 MB" in page.locator("#memory .facts").inner_text()


def test_hostile_names_are_text(tmp_path, open_page):
    profile = with_memory(tmp_path)
    profile.report().save(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html")
    fastprof.diff(profile, profile).page().save(tmp_path / "d.html")
    for opened in (page, open_page(tmp_path / "d.html")):
        assert "hit" not in opened.title()
        assert opened.locator("main img").count() == 0


def test_what_is_missing_is_named(report, open_page):
    page = open_page(report[1])
    assert "--cuda-memory-usage=true" in page.locator("#memory .missing").inner_text()
    assert page.locator("#memory .chart").count() == 0


def test_bars_lead_from_before_to_after(tmp_path, open_page):
    for name, seed in (("before", 1), ("after", 2)):
        generate(tmp_path / f"{name}.sqlite", 2000, seed)
    difference = fastprof.diff(tmp_path / "before.sqlite", tmp_path / "after.sqlite")
    difference.page().save(tmp_path / "d.html")
    page = open_page(tmp_path / "d.html")
    before, after = difference.found.wall_ns
    texts = page.locator("#changes svg text").all_text_contents()
    assert texts[0] == "before"
    assert texts[1] == number(before)
    assert number(after) in texts
    row = next(iter(difference.table().rows()))
    first = selected(page, "changes", "ArrowDown", 2)
    sign = "+" if row["delta_ns"] > 0 else "−"
    assert f"{sign}{number(abs(row['delta_ns']))}" in first
    assert row["why"] in first
    page.keyboard.press("Enter")
    assert page.locator("#changes tr.marked").get_attribute("data-row") == "0"


@pytest.mark.parametrize(("theme", "width"), some(product(["light", "dark"], WIDTHS), 6))
def test_charts_fit_the_width(theme, width, report, open_page):
    page = open_page(report[1], viewport={"width": width, "height": 800}, color_scheme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#roofline canvas").bounding_box()
    chart = page.locator("#roofline .chart").bounding_box()
    assert chart["x"] <= box["x"]
    assert box["x"] + box["width"] <= chart["x"] + chart["width"]
