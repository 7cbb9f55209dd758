"""`profile.plot`: what the charts show equals the tables."""

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof.api.profile import Plots
from fastprof.errors import MissingDependencyError, ReportError
from support.kineto_files import KinetoFile

CHARTS = ("roofline", "steps", "memory", "timeline")


@pytest.fixture(scope="module")
def pyplot() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


@pytest.fixture
def with_memory(tmp_path: Path) -> fastprof.Profile:
    capture = KinetoFile().launch(5, 6, 1).kernel(10, 30, 1, "gemm")
    for time, size, total in ((10, 4_000_000, 5_000_000), (20, 1_000_000, 6_000_000),
                              (30, -4_000_000, 2_000_000)):  # fmt: skip
        sizes = {"Total Allocated": total, "Total Reserved": 8_000_000}
        capture.memory(time, size, **{"Device Type": 1, "Device Id": 0, "Addr": abs(size), **sizes})
    return fastprof.open(capture.write(tmp_path / "x.json"), copies=True)


def test_steps_are_stacked_to_their_length(pyplot, profile):
    axes = profile.plot.steps()
    table = profile.steps()
    tops = [0.0] * table.n_rows
    for bars in axes.containers:
        for row, bar in enumerate(bars):
            tops[row] += bar.get_height()
    np.testing.assert_allclose(tops, np.asarray(table["wall_ns"]) / 1e6)
    assert axes.get_ylabel() == "time (ms)"
    pyplot.close("all")


def test_a_circle_is_a_row_of_the_roofline(pyplot, profile):
    axes = profile.plot.roofline(by="op")
    table = profile.roofline(by="op")
    drawn = {
        tuple(point)
        for collection in axes.collections
        for point in collection.get_offsets().tolist()
    }
    known = [
        (row["intensity"], row["flop_per_s"])
        for row in table.rows()
        if row["intensity"] and row["flop_per_s"]
    ]
    assert drawn == set(known)
    assert len(drawn) > 10
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "FLOP/byte" in axes.get_xlabel()
    pyplot.close("all")


def test_a_bar_is_a_kernel_of_the_step(pyplot, profile):
    axes = profile.plot.timeline(step=1)
    widths = sum(
        path.vertices[:, 0].max() - path.vertices[:, 0].min()
        for collection in axes.collections
        for path in collection.get_paths()
    )
    (row,) = (row for row in profile.steps().rows() if row["step"] == 1)
    assert axes.get_xlim() == (0, row["wall_ns"] / 1e6)
    # One stream: the lengths of the bars are the busy time.
    assert widths == pytest.approx(row["busy_ns"] / 1e6, rel=1e-6)
    assert [get_yticklabel.get_text() for get_yticklabel in axes.get_yticklabels()] == ["stream 7"]
    pyplot.close("all")


def test_the_peak_of_memory_is_marked(pyplot, with_memory):
    axes = with_memory.plot.memory()
    allocated, reserved, peak = axes.lines
    assert allocated.get_ydata().tolist() == [5.0, 6.0, 2.0]
    assert reserved.get_ydata().tolist() == [8.0, 8.0, 8.0]
    assert (peak.get_xdata()[0], peak.get_ydata()[0]) == (allocated.get_xdata()[1], 6.0)
    assert axes.get_ylabel() == "bytes (MB)"
    assert [text.get_text() for text in axes.texts][-1] == "peak 6 MB"
    pyplot.close("all")


@pytest.mark.parametrize("name", CHARTS)
def test_axes_are_drawn_on(name, pyplot, profile, with_memory):
    _, given = pyplot.subplots()
    drawn = getattr((with_memory if name == "memory" else profile).plot, name)(ax=given)
    assert drawn is given
    assert pyplot.get_fignums() == [given.figure.number]
    pyplot.close("all")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("memory", {}, "no memory events: record with"),
        ("timeline", {"step": 99}, "step: expected one of 0, 1, 2, found 99"),
        ("roofline", {"gpu": "A1000"}, "unknown GPU 'a1000'"),
    ],
)
def test_what_is_missing_is_an_error(name, options, message, pyplot, profile):
    with pytest.raises(ReportError, match=message):
        getattr(profile.plot, name)(**options)
    pyplot.close("all")


@pytest.mark.parametrize("name", ["steps", "timeline"])
def test_dict_lines_have_no_times_to_draw(name, pyplot, tmp_path):
    (tmp_path / "net.dict").write_text("{'kShortName': 'gemm', 'kDuration': 5, 'op': ['mm']}\n")
    profile = fastprof.open(tmp_path / "net.dict")
    with pytest.raises(ReportError, match="original trace"):
        getattr(profile.plot, name)()
    pyplot.close("all")


@pytest.mark.parametrize("name", CHARTS)
def test_the_extra_is_named_without_matplotlib(name, profile, monkeypatch):
    real_import = builtins.__import__

    def without(module: str, *arguments: Any, **others: Any) -> Any:
        if module.partition(".")[0] == "matplotlib":
            raise ImportError(module)
        return real_import(module, *arguments, **others)

    for module in [module for module in sys.modules if module.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fastprof\[plot\]'"):
        getattr(Plots(profile), name)()


def test_near_bars_are_one():
    from fastprof.analysis.plot import _bars

    start, length = np.array([0.0, 1.0, 1.5, 5.0]), np.array([0.9, 0.1, 1.0, 1.0])
    np.testing.assert_allclose(_bars(start, length, 0.0), np.stack([start, length], axis=1))
    np.testing.assert_allclose(_bars(start, length, 0.5), [[0.0, 2.5], [5.0, 1.0]])


def test_a_long_step_has_fewer_bars_than_kernels(pyplot, tmp_path):
    generate(tmp_path / "net.sqlite", 30_000, 1)
    profile = fastprof.open(tmp_path / "net.sqlite", copies=True)
    axes = profile.plot.timeline(steps="none")
    assert sum(len(collection.get_paths()) for collection in axes.collections) < 20_000
    pyplot.close("all")
