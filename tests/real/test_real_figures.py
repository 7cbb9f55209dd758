"""Every figure of every report is possible, or marked: over all real traces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fastprof
from fastprof.analysis.reports import all_reports
from fastprof.errors import FastprofError
from fastprof.model.table import Tables
from real import open_traces
from support.real_data import traces

pytestmark = pytest.mark.every_trace
TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*", "pyprof/*.dict")
GROUPINGS = ("op", "kernel", "layer", "line", "shape", ("range", "op"), ("step", "op"), "stream")
# Allocated less freed: negative by definition.
DIFFERENCES = {"self_bytes", "total_bytes", "cuda_self_bytes", "cuda_bytes"}
CACHE, WINOGRAD, BOOST = 8, 4, 1.3


def tables(path: str) -> Iterator[tuple[str, fastprof.Table]]:
    """Every report, and some of them by other keys."""
    for name in all_reports().keys() - {"whatif"}:  # test_real_replay has the replay's limits
        try:
            result = open_traces.report(path, name)
        except FastprofError:
            continue  # the trace has nothing for it, or it needs an option
        if isinstance(result, Tables):
            yield from ((f"{name}: {part}", table) for part, table in result.items())
        else:
            yield name, result
    for by in GROUPINGS:
        for name in ("summary", "roofline"):
            yield f"{name} --by {by}", open_traces.profile(path, copies=True).report(name, by=by)


def figures(table: fastprof.Table, unit: str) -> Iterator[tuple[str, np.ndarray]]:
    """The columns of numbers of a unit, with the total as the last row; NaN where unknown."""
    for heading in table.headings:
        key = heading.key
        if heading.unit == unit and key in table:
            column = np.ma.masked_invalid(np.ma.asarray(table[key], np.float64))
            yield key, np.append(column.filled(np.nan), table.total.get(key) or np.nan)


def is_marked(table: fastprof.Table) -> np.ndarray:
    """[rows and total] Whether the row says that it is above the roof."""
    flags = table["flag"] if "flag" in table else [""] * table.n_rows
    of_rows = [str(flag).startswith("above ") for flag in flags]
    return np.array([*of_rows, any(of_rows)])


@pytest.mark.parametrize("path", TRACES)
def test_no_figure_is_impossible(path):
    profile = open_traces.profile(path, copies=True)
    bandwidths = [device.bandwidth for device in profile.devices.values()]
    peaks = [max(device.flops.values(), default=None) for device in profile.devices.values()]
    limits = {
        "bytes/s": CACHE * (max(bandwidths) if bandwidths and all(bandwidths) else 8e12),
        "flop/s": WINOGRAD * BOOST * (max(peaks) if peaks and all(peaks) else 5e15),
    }
    for name, table in tables(path):
        for unit in ("ns", "bytes", "flop", "bytes/s", "flop/s", "share"):
            for key, values in figures(table, unit):
                if key not in DIFFERENCES:
                    assert not (values < 0).any(), (name, key)
                if unit == "share":
                    is_above = values > 1 + 1e-9
                    assert not (is_above & ~is_marked(table)).any(), (name, key)
                    assert not (values > WINOGRAD * BOOST).any() or name.startswith("copies")
                elif unit in limits and not key.startswith(("peak", "attainable")):
                    assert not (values > limits[unit]).any(), (name, key)


@pytest.mark.parametrize("path", TRACES)
def test_a_row_with_a_roof_has_a_cost_for_its_time(path):
    profile = open_traces.profile(path, copies=True)
    if not len(profile):
        return
    for by in (("dir", "op"), ("kernel",), ("layer",)):
        table, same = profile.roofline(by=by), profile.summary(by)
        assert table.total["lost_ns"] is None or table.total["lost_ns"] >= 0
        for each in (table, same):
            has_roof = ~np.isnan(each["peak_share"])
            assert (each["covered_share"][has_roof] >= 0.9).all()
            marked = np.isin(each["flag"], ["cost too high", "too short"])
            assert not (marked & has_roof).any()
            assert not (marked & ~np.isnan(each["flop_per_s"])).any()


# Files, keys, and the values of a row whose main work has no cost.
UNKNOWN = [
    ("kineto/resnet_intermittent_loader.json.gz", ("dir", "op"), ("bprop", "conv2d")),
    ("kineto/qwen_h100_unlaunched.json.gz", ("dir", "op"), (None, None)),
    ("kineto/qwen_h100_unlaunched.json.gz", ("dir", "op"), ("fprop", "cat")),
    ("kineto/train_v100_2022.json.gz", ("dir", "op"), ("bprop", "CompiledFunction")),
]


@pytest.mark.parametrize(("path", "by", "row"), UNKNOWN)
def test_memsets_and_lists_without_sizes_are_no_roof(path, by, row):
    profile = open_traces.profile(path, copies=True)
    tables = [profile.roofline(by=by), profile.summary(by)]
    overview = open_traces.report(path, "overview")
    if "op" in overview["ops"]:
        tables.append(overview["ops"])
    for table in tables:
        (result,) = (each for each in table.rows() if tuple(each[key] for key in by) == row)
        assert result["peak_share"] is None
        assert result["covered_share"] < 0.5
        if row[-1] is not None:
            assert result.get("ideal_ns") is None
            assert result["lost_ns"] is None


def test_a_memset_that_no_gpu_does_has_no_rate():
    """nvprof records 93 MB in 1.376 us: 67.7 TB/s on a V100."""
    profile = open_traces.profile("pyprof/lm_v100_nvprof.sql", copies=True)
    rows = [row for row in profile.copies().rows() if row["size_class"] == "16-256 MB"]
    assert [(row["bytes"], row["time_ns"]) for row in rows] == [(93_178_400, 1376)]
    assert [(row["bytes_per_s"], row["peak_share"], row["flag"]) for row in rows] == [
        (None, None, "size too high")
    ]
    kernels = {row["kernel"]: row for row in profile.summary(("op", "kernel")).rows()
               if row["op"] == "cross_entropy"}  # fmt: skip
    assert kernels["[CUDA_memset]"]["flag"] == "cost too high"
