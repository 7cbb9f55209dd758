"""What `fastprof.diff` finds between captures whose difference is known."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof import ReportError
from fastprof.model.table import Table
from support import dict_lines
from support.training_files import Work, call, kineto, nsys

Calls = list[Work]

MATRICES = ((8, 16), (16, 4))
BATCHES = ((2, 8, 16), (2, 16, 4))
BASE = [
    call("net:in", "mm", 50_000, "sgemm", MATRICES),
    call("net:in", "relu", 20_000),
    call("net:attn", "mm", 80_000, "sgemm_a", MATRICES),
    call("net:attn", "softmax", 30_000),
    call("net:attn", "bmm", 60_000, "sgemm_b", BATCHES),
    call("net:norm", "layer_norm", 25_000),
    call("net:out", "mm", 40_000, "sgemm", MATRICES),
    call(None, "add_", 10_000),
]
N_STEPS = 4
SHAPE, WIDER = "B=2,M=4,N=8,K=16,na,", "B=2,M=4,N=8,K=32,na,"


def edited(name: str, **fields: Any) -> Calls:
    return [replace(each, **fields) if each.op == name else each for each in BASE]


def slower(calls: Calls, factor: float, op: str | None = None, layer: str = "") -> Calls:
    return [
        replace(each, kernels=tuple((name, round(ns * factor)) for name, ns in each.kernels))
        if op in (None, each.op) and layer in (each.layer or "")
        else each
        for each in calls
    ]


def without(op: str) -> Calls:
    return [each for each in BASE if each.op != op]


def in_layer(old: str, new: str, calls: Calls) -> Calls:
    return [replace(each, layer=each.layer and each.layer.replace(old, new)) for each in calls]


# The changed work; and the rows that change, as (layer, op): (ns, why).
EDITS: dict[str, tuple[Calls, dict[tuple[str | None, str | None], tuple[int, str]]]] = {
    "nothing": (BASE, {}),
    "layer slower": (
        slower(BASE, 1.5, layer="attn"),
        {
            ("net:attn", "mm"): (40_000, "slower"),
            ("net:attn", "softmax"): (15_000, "slower"),
            ("net:attn", "bmm"): (30_000, "slower"),
        },
    ),
    "op faster": (slower(BASE, 0.5, "softmax"), {("net:attn", "softmax"): (-15_000, "faster")}),
    "op replaced": (
        edited("relu", op="gelu", kernels=(("gelu_kernel", 22_000),)),
        {("net:in", "relu -> gelu"): (2_000, "replaced by gelu")},
    ),
    "op removed": (without("layer_norm"), {("net:norm", "layer_norm"): (-25_000, "removed")}),
    "op added": (
        [*BASE[:3], call("net:attn", "dropout", 5_000), *BASE[3:]],
        {("net:attn", "dropout"): (5_000, "added")},
    ),
    "op twice": ([*BASE, BASE[1]], {("net:in", "relu"): (20_000, "more calls (1 -> 2)")}),
    "all slower": (
        slower(BASE, 1.05),
        {(None, None): (15_750, "kernels take 1.050 times as long")},
    ),
    "all slower, one more": (
        slower(slower(BASE, 1.05), 1.5, "bmm"),
        {
            (None, None): (16_518, "kernels take 1.050 times as long"),
            ("net:attn", "bmm"): (30_732, "slower"),
        },
    ),
    "renamed layer": (in_layer("attn", "attention", BASE), {}),
    "renamed layer, one op slower": (
        in_layer("attn", "attention", slower(BASE, 2, "softmax")),
        {("net:attn -> net:attention", "softmax"): (30_000, "slower")},
    ),
    "other shape": (
        edited("bmm", dims=((2, 8, 32), (2, 32, 4)), kernels=(("sgemm_b", 110_000),)),
        {("net:attn", "bmm"): (50_000, f"other shape: {SHAPE} -> {WIDER}")},
    ),
    "other kernel": (
        edited("bmm", kernels=(("nvjet", 33_000),)),
        {("net:attn", "bmm"): (-27_000, "other kernel: sgemm_b -> nvjet")},
    ),
    "fused": (
        [*BASE[:2], call("net:attn", "CompiledFunction", 150_000), *BASE[5:]],
        {
            ("net:attn", "mm + bmm + softmax -> CompiledFunction"): (
                -20_000,
                "replaced by CompiledFunction",
            )
        },
    ),
}

EDITS["compiled"] = (
    [
        *BASE[:2],
        call("net:attn", "triton_poi_fused_softmax_3", 10_000),
        call(None, "CompiledFunction", 100_000),
        *BASE[6:],
    ],
    {
        ("net:attn", "mm + bmm + softmax -> triton_poi_fused_softmax_3"): (
            -160_000,
            "replaced by triton_poi_fused_softmax_3",
        ),
        ("net:norm", "layer_norm -> CompiledFunction"): (75_000, "replaced by CompiledFunction"),
    },
)

Captures = Callable[..., Path]


@pytest.fixture
def capture(tmp_path: Path) -> Captures:
    made: list[Path] = []

    def write(calls: Calls, form: Any = nsys, steps: Sequence[Calls] = ()) -> Path:
        made.append(tmp_path / f"{len(made)}.{'sqlite' if form is nsys else 'json'}")
        return form(made[-1], steps or [calls] * N_STEPS)  # type: ignore[no-any-return]

    return write


def changed(table: Table) -> dict[tuple[str | None, str | None], tuple[int, str]]:
    """The rows that change, without the first one's launch latency."""
    return {
        (row["layer"], row["op"]): (row["delta_ns"], row["why"])
        for row in table.rows()
        if row["delta_ns"] or row["why"] != "same"
    }


def added_up(found: fastprof.Diff, by: str) -> int:
    return sum(row["delta_ns"] for row in found.table(by.split(",")).rows())


@pytest.mark.parametrize("form", [nsys, kineto])
@pytest.mark.parametrize("name", EDITS)
def test_a_known_edit_is_found_exactly(capture, name, form):
    calls, expected = EDITS[name]
    difference = fastprof.diff(capture(BASE), capture(calls, form))
    assert changed(difference.table()) == expected
    wall = difference.wall
    for by in ("dir,layer,op", "kind", "kernel", "shape,op", "phase", "line"):
        assert added_up(difference, by) == wall["after_ns"] - wall["before_ns"]


@pytest.mark.parametrize("name", EDITS)
def test_the_reverse_is_the_negative(capture, name):
    before, after = fastprof.open(capture(BASE)), fastprof.open(capture(EDITS[name][0]))
    there, back = (fastprof.diff(*pair).table() for pair in ((before, after), (after, before)))

    def rows(table: Table, sign: int) -> list[Any]:
        names = ("part", "dir", "layer", "op")
        return sorted(
            ([sorted(str(row[name]).split(" -> ")) for name in names], sign * row["delta_ns"])
            for row in table.rows()
        )

    assert rows(there, 1) == rows(back, -1)


def test_the_waterfall_is_that_of_the_step(capture):
    """What the GPU does not do is idle, by its cause."""
    late = [replace(each, host_ns=200_000) if each.op == "softmax" else each for each in BASE]
    difference = fastprof.diff(capture(BASE), capture(late))
    rows = {
        row["part"]: row["delta_ns"] for row in difference.table(["kind"]).rows() if row["delta_ns"]
    }
    assert set(rows) <= {"idle: host-bound", "idle: launch latency"}
    assert sum(rows.values()) == difference.wall["after_ns"] - difference.wall["before_ns"] > 0


def test_other_streams_hide_work(capture):
    apart = [replace(each, stream=8 + i % 2) for i, each in enumerate(BASE)]
    difference = fastprof.diff(capture(BASE), capture(apart))
    assert {why for _, why in changed(difference.table()).values()} == {"overlaps more"}
    for row in difference.table().rows():
        assert row["gpu_before_ns"] == row["gpu_after_ns"]
    assert difference.same_work


def test_the_wall_is_the_mean_of_the_steps(capture):
    steps = [slower(BASE, factor) for factor in (1, 1, 1, 1.3)]
    difference = fastprof.diff(capture(BASE), capture([], steps=steps))
    total = sum(ns for each in BASE for _, ns in each.kernels)
    assert (
        difference.wall["after_ns"] - difference.wall["before_ns"] == total * 0.3 / 3
    )  # the first does not count
    assert difference.wall["change"] == pytest.approx(
        total * 0.3 / 3 / difference.wall["before_ns"]
    )


def test_same_work_compares_calls_and_shapes(capture):
    base = fastprof.open(capture(BASE))
    equal = {"nothing", "layer slower", "op faster", "all slower", "all slower, one more",
             "renamed layer", "renamed layer, one op slower", "other kernel"}  # fmt: skip
    for name, (calls, _) in EDITS.items():
        assert fastprof.diff(base, capture(calls)).same_work == (name in equal), name


def test_renamed_layers_are_noted(capture):
    difference = fastprof.diff(capture(BASE), capture(in_layer("attn", "attention", BASE)))
    assert "renamed layers: net:attn -> net:attention" in difference.table().notes


def test_types_that_one_recorder_lacks_are_not_compared(capture):
    difference = fastprof.diff(capture(BASE), capture(BASE, kineto))
    assert "not compared, as only one side records them: types" in difference.table().notes


def test_layers_that_one_recorder_lacks_are_not_compared(capture):
    """Even if it has a layer now and then."""
    lacking = [replace(each, layer=each.layer if each.op == "relu" else None) for each in BASE]
    difference = fastprof.diff(capture(BASE), capture(lacking))
    assert changed(difference.table()) == {}
    assert difference.same_work
    assert "not compared, as only one side records them: layer" in difference.table().notes


def test_kernels_match_by_name_if_one_side_has_no_operators(capture):
    bare = [replace(each, op=None, layer="train") for each in slower(BASE, 2, "softmax")]
    difference = fastprof.diff(capture(BASE), capture(bare), by="kernel")
    rows = {row["kernel"]: row for row in difference.table().rows() if row["delta_ns"]}
    assert {name: row["delta_ns"] for name, row in rows.items()} == {"softmax_kernel": 30_000}
    assert "only one side records them" in difference.table().notes[0]


@pytest.mark.parametrize("has_layers", [True, False])
def test_moved_lines_are_the_same_work(capture, has_layers):
    """Two lines are new at the top of the file; one operator is slower."""
    before, after = (
        [
            replace(each, line=first + i, layer=each.layer if has_layers else None)
            for i, each in enumerate(calls)
        ]
        for first, calls in ((10, BASE), (12, slower(BASE, 2, "mm", "attn")))
    )
    difference = fastprof.diff(capture(before, kineto), capture(after, kineto))
    layer = "net:attn" if has_layers else None
    assert changed(difference.table()) == {(layer, "mm"): (80_000, "slower")}
    assert difference.same_work
    (row,) = [row for row in difference.table(["line"]).rows() if row["delta_ns"]]
    assert row["line"] == "/home/user/net.py:12 forward -> /home/user/net.py:14 forward"


def test_layers_with_other_numbers_are_one(capture):
    """A deeper model has more calls of the same layer."""
    blocks = [in_layer("net", f"blocks.{i}", BASE[:-1]) for i in range(3)]
    difference = fastprof.diff(
        capture([*blocks[0], *blocks[1]]), capture([*blocks[0], *blocks[1], *blocks[2]])
    )
    rows = [row for row in difference.table().rows() if row["op"] == "softmax"]
    assert [(row["layer"], row["why"], row["count_ns"]) for row in rows] == [
        ("blocks.*:attn", "more calls (2 -> 3)", 30_000)
    ]
    assert any("1.5 times the calls" in note for note in difference.table().notes)


def test_one_slower_kernel_is_not_the_clock(capture):
    difference = fastprof.diff(capture(BASE), capture(slower(BASE, 1.5, "mm")))
    assert difference.found.clocks is None


def test_captures_without_steps_are_compared_as_a_whole_if_the_work_is_equal(capture):
    one = [[*BASE, call(None, "cat", 1_000)]]
    other = [[*slower(BASE, 2, "bmm"), call(None, "cat", 1_000)]]
    difference = fastprof.diff(capture([], steps=one), capture([], steps=other), steps="none")
    assert difference.wall["change"] is None
    assert difference.wall["after_ns"] - difference.wall["before_ns"] == 60_000
    assert changed(difference.table()) == {("net:attn", "bmm"): (60_000, "slower")}


def test_captures_without_steps_that_differ_are_compared_by_call(capture):
    """Three runs against two, with twice the time of one operator: totals would mislead."""
    before = capture([], steps=[[*BASE, *BASE, *BASE]])
    after = capture([], steps=[[*slower(BASE, 2, "bmm"), *slower(BASE, 2, "bmm"),
                                call(None, "cat", 1_000)]])  # fmt: skip
    table = fastprof.diff(before, after, steps="none").table()
    rows = {(row["layer"], row["op"]): row for row in table.rows()}
    assert rows["net:attn", "bmm"]["delta_ns"] == 2 * 60_000
    assert rows["net:norm", "layer_norm"]["delta_ns"] == 0
    assert rows[None, "cat"]["why"] == "added"
    assert rows[None, "cat"]["delta_ns"] is None
    assert not any(row["part"].startswith("idle") for row in table.rows())
    assert "no steps in BEFORE and AFTER" in table.title


def test_ranks_are_one_side(capture):
    """The step of several ranks is their mean."""
    fast, slow = capture(BASE), capture(slower(BASE, 1.5, layer="attn"))
    difference = fastprof.diff([fast, fast], [fast, slow])
    assert difference.after.n_windows == 2 * (N_STEPS - 1)
    assert changed(difference.table()) == {
        key: (ns // 2, why) for key, (ns, why) in EDITS["layer slower"][1].items()
    }


def test_where_selects_work(capture):
    difference = fastprof.diff(
        capture(BASE), capture(slower(BASE, 1.5, layer="attn")), where=["op=softmax"]
    )
    table = difference.table()
    assert {row["op"] for row in table.rows() if row["part"] == "compute"} == {"softmax"}
    assert changed(table)["net:attn", "softmax"] == (15_000, "slower")


def test_captures_that_cannot_be_compared(capture):
    base = capture(BASE)
    lines = dict_lines.reopened(fastprof.open(base))
    with pytest.raises(ReportError, match="dict lines contain no times"):
        fastprof.diff(base, lines)
    idle = capture([], steps=[[replace(each, kernels=()) for each in BASE]])
    with pytest.raises(ReportError, match="no kernels"):
        fastprof.diff(base, idle)


def test_the_error_is_that_of_the_mean(capture):
    """1, 1 and 1.3 times the time: the change of 10 % is less than two errors."""
    factors = (1.0, 1.0, 1.0, 1.3)
    steps = [slower(BASE, factor, "bmm") for factor in factors]
    difference = fastprof.diff(capture(BASE), capture([], steps=steps))
    row = next(row for row in difference.table().rows() if row["op"] == "bmm")
    assert row["error_ns"] == pytest.approx(
        np.std(np.multiply(60_000, factors[1:]), ddof=1) / np.sqrt(3)
    )
    assert (row["delta_ns"], row["why"]) == (6_000, "same")


def test_the_error_is_unknown_with_two_steps(capture):
    difference = fastprof.diff(capture([], steps=[BASE] * 2), capture(BASE))
    assert {row["error_ns"] for row in difference.table().rows()} == {None}


def test_kernels_of_inductor_have_other_numbers(capture):
    before, after = (
        [*BASE, call("net:out", name, 9_000, name)]
        for name in ("triton_poi_fused_relu_3", "triton_poi_fused_relu_12")
    )
    difference = fastprof.diff(capture(before), capture(after))
    assert changed(difference.table()) == {}
    assert difference.same_work


def test_kernels_without_operators_match_by_range_and_kind(capture):
    """Another gemm in the same range is another kernel; unrelated kernels are added and removed."""
    before = capture([call("block", None, 50_000, "sgemm_nn"), call("block", None, 9_000, "mine")])
    after = capture([call("block", None, 40_000, "nvjet_gemm"), call("block", None, 9_000, "mine")])
    rows = {row["kernel"]: row for row in fastprof.diff(before, after, by="kernel").table().rows()}
    assert rows["mine"]["why"] == "same"
    by_range = fastprof.diff(before, after, by="range,kind").table()
    row = next(row for row in by_range.rows() if row["kind"] == "gemm")
    assert (row["delta_ns"], row["why"]) == (-10_000, "other kernel: sgemm_nn -> nvjet_gemm")


def test_a_layer_that_one_side_lacks_is_shown_in_both_directions(capture):
    without, some = (
        capture([call(None, "to", 9_000)]),
        capture([call(None, "to", 9_000), call("net:in", "to", 9_000)]),
    )
    for pair in ((without, some), (some, without)):
        rows = [row for row in fastprof.diff(*pair).table().rows() if row["op"] == "to"]
        assert [row["layer"] for row in rows] == ["net:in"]
