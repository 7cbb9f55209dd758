"""`layers` and `lines` of real traces, against plain Python over the rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from typing import Any

import pytest

import fastprof
from fastprof.analysis.catalogue import LAYERS, LINES
from fastprof.analysis.roofline.ideal import ideals_of
from real import open_traces
from support.real_data import real, traces

R18 = "kineto/resnet18_mi300_full.json.gz"
R50 = "kineto/resnet50_2021_stack_memory.json.gz"
OWL = "kineto/owlv2_h100.json.gz"
CHECKPOINT = "kineto/resnet_checkpoint_mi300.json.gz"
EVERY = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.dict")
PARTS = {"forward": "forward_ns", "backward": "backward_ns", "fprop": "forward_ns"}
PARTS |= {"bprop": "backward_ns"}
TIMES = ("forward_ns", "backward_ns", "other_ns")

every_trace = pytest.mark.parametrize("path", EVERY)


def profile_of(path: str) -> fastprof.Profile:
    return open_traces.profile(path, copies=True)


@lru_cache(maxsize=1)
def rows_of(path: str) -> list[dict[str, Any]]:
    return list(profile_of(path).rows())


def part_of(row: dict[str, Any]) -> str:
    """The column that the time of a row counts to."""
    return PARTS.get(row["phase"] if "phase" in row else row["dir"], "other_ns")


def ideals(path: str) -> list[tuple[float, int]]:
    """Ideal time and GPU time of each row with an ideal time, (0, 0) for others."""
    result = ideals_of(profile_of(path), profile_of(path).devices)
    both = zip(result.ideal.tolist(), result.is_counted.tolist(), rows_of(path), strict=True)
    return [(ideal, row["sil"] or 0) if known else (0, 0) for ideal, known, row in both]


def sums_of(rows: list[dict[str, Any]], keys_of: Any) -> dict[Any, Counter[str]]:
    """Times, kernels, flops and bytes of each key; a row counts to each of its keys once."""
    result: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for key in set(keys_of(row)):
            of = result[key]
            of[part_of(row)] += row["sil"] or 0
            of["gpu_ns"] += row["sil"] or 0
            of["kernels"] += 1
            for name in ("flops", "bytes"):
                of[name] += row[name] or 0
                of[f"n_{name}"] += row[name] is not None
    return result


def agree(row: dict[str, Any], expected: Counter[str]) -> None:
    for name in (*TIMES, "gpu_ns", "kernels"):
        assert row[name] == expected[name], name
    for name in ("flops", "bytes"):
        assert row[name] == (expected[name] if expected[f"n_{name}"] else None), name


def total_is_that_of_the_rows(table: fastprof.Table, rows: list[dict[str, Any]]) -> None:
    time = sum(row["sil"] or 0 for row in rows)
    assert sum(table["own_ns"]) == table.total.get("gpu_ns", 0) == time
    assert table.total.get("kernels", 0) == len(rows)
    assert sum(table.total.get(name, 0) for name in TIMES) == time


@every_trace
def test_layers_are_sums_over_the_rows(path):
    rows, table = rows_of(path), profile_of(path).layers()
    recomputed = [row for row in rows if row.get("phase") == "recompute" and row["layer"]]
    expected = sums_of(
        rows,
        lambda row: (
            ":".join(row["layer"][:n]) or "(no layer)"
            for n in range(len(row["layer"]), -1, -1)
            if n or not row["layer"]
        ),
    )
    if not recomputed:  # which counts to the layers of its forward pass
        assert {row["layer"] for row in table.rows()} == expected.keys()
        for row in table.rows():
            agree(row, expected[row["layer"]])
    total_is_that_of_the_rows(table, rows)
    outermost = [row for row in table.rows() if row["depth"] <= 1]
    assert sum(row["gpu_ns"] for row in outermost) == table.total.get("gpu_ns", 0)


@every_trace
def test_a_layer_is_its_own_time_and_that_of_its_children(path):
    rows = rows_of(path)
    depth = max((len(row["layer"]) for row in rows), default=0)
    for options in ({}, {"fold": True}, *({"depth": n} for n in range(1, depth + 1, 2))):
        table = profile_of(path).layers(**options)
        inner: Counter[str] = Counter()
        for row in table.rows():
            assert row["forward_ns"] + row["backward_ns"] + row["other_ns"] == row["gpu_ns"]
            assert row["with_backward_ns"] == row["forward_ns"] + row["backward_ns"]
            if row["depth"] > 1:
                inner[row["layer"].removesuffix(f":{row['name']}")] += row["gpu_ns"]
        for row in table.rows():
            assert row["gpu_ns"] == row["own_ns"] + inner[row["layer"]], row["layer"]
            assert row["depth"] <= options.get("depth", depth)
        total_is_that_of_the_rows(table, rows)


@every_trace
def test_folded_rows_are_sums_of_the_layers(path):
    table, folded = profile_of(path).layers(), profile_of(path).layers(fold=True)
    assert sum(folded["instances"]) == table.n_rows
    by_depth: dict[int, Counter[str]] = defaultdict(Counter)
    for sign, of in ((1, table), (-1, folded)):
        for row in of.rows():
            for name in ("gpu_ns", "own_ns", "kernels"):
                by_depth[row["depth"]][name] += sign * row[name]
    assert not any(any(each.values()) for each in by_depth.values())
    for row in folded.rows():
        assert row["mean_ns"] * row["instances"] == pytest.approx(row["gpu_ns"])
        assert row["min_ns"] <= row["mean_ns"] <= row["max_ns"]
        assert row["std_ns"] <= row["max_ns"] - row["min_ns"]


@every_trace
def test_the_share_of_the_roof_is_ideal_time_by_time(path):
    rows, profile = rows_of(path), profile_of(path)
    ideal_times = ideals(path)
    table = profile.layers(depth=1)
    expected: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
    for row, (ideal, time) in zip(rows, ideal_times, strict=True):
        of = expected["(no layer)" if not row["layer"] else row["layer"][0]]
        of[0], of[1], of[2] = of[0] + ideal, of[1] + time, of[2] + (row["sil"] or 0)
    if not any(row.get("phase") == "recompute" for row in rows):
        for row in table.rows():
            ideal, time, all_time = expected[row["layer"]]
            share = ideal / time if time >= 0.9 * all_time > 0 else None
            assert row["peak_share"] == (share and pytest.approx(share)), row["layer"]
            assert row["covered_share"] == (pytest.approx(time / all_time) if all_time else None)
    for each in (table, profile.lines(), profile.layers(), profile.layers(fold=True)):
        for row in each.rows():
            assert (row["peak_share"] or 0) <= 1 or row["flag"] == "above roof"
        total = sum(ideal for ideal, _ in ideal_times)
        assert (each.total.get("ideal_ns") or 0) == pytest.approx(total)


@every_trace
def test_lines_are_sums_over_the_rows(path):
    rows, profile = rows_of(path), profile_of(path)
    every = profile.lines("*") if any(row["trace"] for row in rows) else profile.lines()
    expected = sums_of(rows, lambda row: row["trace"])
    result = {row["frame"]: row for row in every.rows() if row["file"] is not None}
    assert result.keys() == expected.keys()
    for frame, row in result.items():
        agree(row, expected[frame])
    table = profile.lines()
    total_is_that_of_the_rows(table, rows)
    # Below a line that takes nearly all of the time, lines of libraries are rows.
    longest = next((note.split(" takes ")[0] for note in table.notes if " takes " in note), None)
    own: Counter[str] = Counter()
    for row in rows:
        line = row["line"] or "(no line)"
        is_below = longest is not None and line.split(" ")[0] == longest
        own[(row["library_line"] if is_below else None) or line] += row["sil"] or 0
    if any(row["line"] for row in rows):
        assert {row["frame"]: row["own_ns"] for row in table.rows() if row["own_ns"]} == {
            frame: time for frame, time in own.items() if time
        }


@every_trace
def test_functions_are_sums_of_lines(path):
    rows = rows_of(path)
    table = profile_of(path).lines(by="function")
    total_is_that_of_the_rows(table, rows)
    for row in table.rows():
        assert row["own_ns"] <= row["gpu_ns"]


def test_the_layers_of_a_network_have_the_times_that_were_published():
    """Milliseconds per iteration, of five: forward, backward, total."""
    table = profile_of(R18).layers(depth=2, steps="repetition")
    result = {row["name"]: row for row in table.rows()}
    for name, expected in {
        "ResNet_0": (23.20, 48.53, 71.72),
        "Sequential_0": (6.94, 16.65, 23.59),
        "Sequential_1": (4.90, 10.27, 15.17),
        "BatchNorm2d_0": (2.27, 7.22, 9.48),
        "Sequential_3": (3.00, 5.25, 8.25),
        "MaxPool2d_0": (1.09, 2.98, 4.08),
    }.items():
        row = result[name]
        times = (row["forward_ns"], row["backward_ns"], row["gpu_ns"])
        assert times == tuple(pytest.approx(5e6 * each, abs=5e6 * 0.006) for each in expected)
        assert row["step_ns"] == pytest.approx(row["gpu_ns"] / 5, rel=5e-3)  # of four steps


def test_the_lines_of_a_program_have_the_times_that_were_published():
    """Milliseconds per step, of six: forward, backward, total."""
    profile = fastprof.open(real(R50), copies=True, mine="*resnet*")
    result = {
        (row["file"].split("/")[-1], row["line"]): row
        for row in profile.lines().rows()
        if row["file"]
    }
    for (file, line), expected in {
        ("resnet50_profiler_api.py", 46): (32.7, 61.3, 94.0),
        ("resnet.py", 239): (9.5, 18.3, 27.9),
        ("resnet.py", 128): (6.1, 14.1, 20.2),
        ("resnet.py", 124): (6.4, 13.2, 19.6),
    }.items():
        row = result[file, line]
        times = (row["forward_ns"], row["backward_ns"], row["gpu_ns"])
        assert times == tuple(pytest.approx(6e6 * each, abs=6e6 * 0.06) for each in expected)
    optimizer = result["resnet50_profiler_api.py", 51]
    assert optimizer["other_ns"] == optimizer["gpu_ns"] == pytest.approx(6e6 * 1.31, abs=6e4)


def test_recomputed_work_counts_to_the_checkpointed_layers():
    recomputed = sum(
        row["sil"] for row in rows_of(CHECKPOINT) if row["phase"] == "recompute" and row["layer"]
    )
    outermost = {row["layer"]: row for row in profile_of(CHECKPOINT).layers(depth=1).rows()}
    assert outermost.keys() == {"DistributedDataParallel_0", "(no layer)"}
    assert 0 < recomputed <= outermost["DistributedDataParallel_0"]["other_ns"]


def test_equal_blocks_are_one_row():
    rows = {
        row["name"]: row
        for row in profile_of(OWL).layers(fold=True, where=["layer=*Encoder_0*"]).rows()
    }
    assert rows["Owlv2EncoderLayer_*"]["instances"] == 24
    assert rows["Owlv2EncoderLayer_*"]["std_ns"] < 0.05 * rows["Owlv2EncoderLayer_*"]["mean_ns"]


@pytest.mark.parametrize(
    ("path", "report", "options", "text"),
    [
        (R18, "layers", {"depth": 2}, LAYERS),
        (R50, "lines", {"files": "resnet50_profiler_api.py"}, LINES),
    ],
)
def test_the_help_shows_what_the_report_prints(path, report, options, text):
    _, _, example = text.partition("$ fastprof")
    shown = example.partition("\n")[2]
    printed = profile_of(path).report(report, **options).text(width=80)
    assert shown == printed.partition("(too narrow")[0]
