"""The sections roofline and memory of the page, and the page of differences."""

import re
from typing import Any

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof.analysis.memory.rows import envelope
from fastprof.analysis.roofline.points import PLACES, places_of, points_of
from fastprof.page.difference import page_of_diff
from fastprof.page.section import PageSource, Section
from fastprof.page.sections import memory, roofline
from support.commands import one_line, run
from support.kineto_files import KinetoFile


def no_shapes() -> KinetoFile:
    return KinetoFile().op(0, 20, "aten::mm").launch(5, 6, 1).kernel(10, 30, 1, "gemm")


def test_each_row_has_the_place_with_most_time(profile):
    table = profile.roofline()
    places = places_of(profile, table)
    for name in PLACES:
        times: dict[tuple[Any, ...], dict[Any, int]] = {}
        for row in profile.summary(by=["dir", "op", "shape", name]).rows():
            if row[name] is not None:
                of_key = times.setdefault((row["dir"], row["op"], row["shape"]), {})
                of_key[row[name]] = row["gpu_ns"]
        for i, row in enumerate(table.rows()):
            of_key = times.get((row["dir"], row["op"], row["shape"]), {})
            result = places[name].at(i)
            assert (result is None) == (not of_key)
            assert not of_key or of_key[result] == max(of_key.values())


def test_points_are_the_longest_rows_with_flops(profile):
    table = profile.roofline()
    rows = points_of(table, 5)
    assert len(rows) == 5
    time = np.asarray(table["gpu_ns"])
    drawable = (table["intensity"] > 0) & (table["flop_per_s"] > 0)
    assert time[rows].tolist() == sorted(time[drawable].tolist(), reverse=True)[:5]


def test_the_chart_has_the_values_of_the_table(profile):
    section = roofline.section(PageSource(profile))
    (chart,) = section.charts
    ((_, table),) = section.tables
    rows = chart.arrays["row"]
    np.testing.assert_array_equal(chart.arrays["ns"], np.asarray(table["gpu_ns"])[rows])
    np.testing.assert_array_equal(chart.arrays["share"], table["peak_share"][rows])
    labels = chart.data["labels"]["op"]
    assert [labels[i] for i in chart.arrays["op"]] == table["op"][rows].tolist()
    assert chart.data["peaks"]["bf16"] == pytest.approx(989.4e12)


@pytest.mark.parametrize(
    ("capture", "peaks", "message"),
    [
        (KinetoFile().op(0, 1, "aten::mm"), {}, "no kernels"),
        (no_shapes(), {}, "no operator has known FLOPs and bytes"),
        (no_shapes(), {}, "the peaks of the GPU are unknown: --gpu NAME"),
    ],
)
def test_what_the_roofline_lacks_is_named(capture, peaks, message, opened):
    section = roofline.section(PageSource(opened(capture), peaks))
    assert any(message in each for each in section.missing)
    assert not section.charts


def test_dict_lines_have_a_roofline_and_no_memory(trace, tmp_path):
    assert run("parse", trace, "-o", tmp_path / "net.dict").returncode == 0
    source = PageSource(fastprof.open(tmp_path / "net.dict"), {"gpu": "H100"})
    assert len(roofline.section(source).charts) == 1
    assert memory.section(source).missing == [
        "no memory events in dict lines: use the original trace"
    ]


def curve(section: Section) -> Any:
    (chart,) = section.charts
    return chart.arrays


def test_the_curve_keeps_the_peak_of_many_events(opened):
    capture = no_shapes()
    sizes = np.random.default_rng(3).integers(1, 1000, 9000)
    total = 0
    for i, size in enumerate(sizes.tolist()):
        signed = -size if i % 2 else size
        total += signed
        args = {"Device Type": 1, "Device Id": 0, "Addr": i, "Total Allocated": 10**6 + total}
        capture.memory(10 * i, signed, **args)
    section = memory.section(PageSource(opened(capture)))
    arrays = curve(section)
    assert len(arrays["ns"]) <= 4000
    assert arrays["allocated"].max() == section.charts[0].data["peak_bytes"]
    assert section.charts[0].data["peak_ns"] in arrays["ns"]


@pytest.mark.parametrize("n", [1, 8, 9, 1000])
def test_an_envelope_keeps_ends_and_extremes(n):
    values = np.random.default_rng(n).integers(-50, 50, n)
    rows = envelope(values, 8)
    assert len(rows) <= max(n if n <= 8 else 8, 1)
    assert rows[0] == 0
    assert rows[-1] == n - 1
    assert values[rows].min() == values.min()
    assert values[rows].max() == values.max()


def other_calls() -> KinetoFile:
    capture = no_shapes().op(40, 60, "aten::add")
    return capture.launch(45, 46, 2).kernel(50, 90, 2, "elementwise")


def test_captures_of_different_work_have_a_page(tmp_path):
    before = fastprof.open(no_shapes().write(tmp_path / "a.json"), copies=True)
    after = fastprof.open(other_calls().write(tmp_path / "b.json"), copies=True)
    html = page_of_diff(fastprof.diff(before, after)).html
    assert "not judged" in html
    assert "do different work" in html


def test_equal_captures_have_a_page_without_bars(profile):
    html = fastprof.diff(profile, profile).page().html
    assert "no part changed" in html
    assert 'data-script="waterfall"' not in html


def test_a_comparison_shows_itself_in_notebooks(profile):
    difference = fastprof.diff(profile, profile)
    assert difference._repr_html_() == difference.table()._repr_html_()
    assert "<caption>step " in difference._repr_html_()


def test_diff_writes_the_page_and_the_text(trace, tmp_path):
    generate(tmp_path / "after.sqlite", 1000, 2)
    page = tmp_path / "change.html"
    done = run("diff", trace, tmp_path / "after.sqlite", "--html", page)
    assert done.returncode == 0
    assert done.stdout == run("diff", trace, tmp_path / "after.sqlite").stdout
    assert done.stderr.decode() == f"fastprof: wrote {page}\n"
    text = page.read_text()
    difference = fastprof.diff(trace, tmp_path / "after.sqlite")
    assert f"{difference.wall['change']:+.1%}" in text
    assert re.findall(r'<section id="(\w+)"', text) == ["answer", "changes", "where", "tables"]


def test_a_page_that_cannot_be_written_is_one_line(trace, tmp_path):
    place = tmp_path / "absent" / "change.html"
    done = run("diff", trace, trace, "-o", tmp_path / "x.txt", "--html", place)
    assert f"{place}: cannot be written" in one_line(done)
    done = run("diff", trace, trace, "--html", trace)
    assert "is an input; choose another name for --html" in one_line(done)
