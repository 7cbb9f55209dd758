"""The page of a trace whose host's side does not fit in memory."""

import re
from pathlib import Path

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof.analysis.reports import all_reports
from fastprof.api.open import open_trace
from fastprof.model.table import Table
from fastprof.page import page_of
from fastprof.page.section import PageSource, open_for_page
from fastprof.page.sections import SECTIONS
from support.commands import run
from support.kineto_files import KinetoFile

N = 40_000
HOST_COLUMNS = {
    "steps": {"sync_ns", "alloc_ns", "data_loading_ns"},
    "copies": {"blocking", "blocked_ns"},
}
LEAVES_OUT = "API calls and the times of ranges are left out"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "net.sqlite"
    generate(path, N)
    return path


@pytest.fixture
def without(trace: Path, monkeypatch: pytest.MonkeyPatch) -> fastprof.Profile:
    monkeypatch.setenv("FASTPROF_MEMORY", "20M")
    return open_for_page(trace, open_trace)


def test_the_host_is_left_out_only_if_the_page_would_not_fit(trace, without, monkeypatch):
    assert without.source.host_omitted.startswith(LEAVES_OUT)
    assert "FASTPROF_MEMORY allows 20.0M; use a larger machine" in without.source.host_omitted
    assert (len(without.api), len(without.ranges)) == (0, 0)
    monkeypatch.delenv("FASTPROF_MEMORY")
    assert open_for_page(trace, open_trace).source.host_omitted == ""
    assert len(open_for_page(trace, open_trace).api) > N


def values(table: Table, name: str) -> list[object]:
    column = table.columns[name]
    return [column.at(row) for row in range(table.n_rows)]


def test_reports_of_kernels_are_the_same_and_others_say_why(trace, without):
    whole = fastprof.open(trace, copies=True)
    for name in ("summary", "layers", "lines", "roofline", "overlap"):
        assert without.report(name).csv() == whole.report(name).csv()
    needing = {name for name, report in all_reports().items() if "host" in report.needs}
    assert {"idle", "ranges", *HOST_COLUMNS} <= needing
    for name in needing - {*HOST_COLUMNS}:
        table = PageSource(without).table(name)
        assert table.n_rows == 0
        assert table.notes == (without.source.host_omitted,)
    for name, of_host in HOST_COLUMNS.items():
        result, expected = PageSource(without).table(name), whole.report(name)
        assert any(without.source.host_omitted in note for note in result.notes)
        assert not any("nsys profile -t cuda" in note for note in result.notes)
        for column in expected.columns:
            if column in of_host:
                assert set(values(result, column)) == {None}
                assert set(values(expected, column)) != {None}
            else:
                assert values(result, column) == values(expected, column)
    assert np.array_equal(without.find_steps().length, whole.find_steps().length)


def test_the_command_writes_the_page_and_warns(trace, tmp_path, monkeypatch):
    monkeypatch.setenv("FASTPROF_MEMORY", "20M")
    done = run("report", trace, "-o", tmp_path / "x.html")
    message = done.stderr.decode()
    assert done.returncode == 0, message
    assert f"warning: {LEAVES_OUT}" in message
    html = (tmp_path / "x.html").read_text("utf-8")
    assert "Your ranges, Causes of idle time: API calls" in html
    assert "causes of idle time unknown: API calls" in html


def test_the_page_has_all_sections(trace, without):
    html, whole = page_of(without).html, page_of(open_trace(trace, host=True)).html
    sections = re.findall('<section id="(.*?)"', whole)
    assert len(sections) == len(SECTIONS)
    assert re.findall('<section id="(.*?)"', html) == sections
    assert html.count(LEAVES_OUT) >= 3
    assert LEAVES_OUT not in whole


def test_other_formats_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTPROF_MEMORY", "1M")
    trace = KinetoFile().op(0, 10, "aten::mm").launch(1, 2, 7).kernel(3, 9, 7)
    assert open_for_page(trace.write(tmp_path / "x.json"), open_trace).source.host_omitted == ""
