"""`layers`: the tree of generated captures, against hand-computed times."""

from __future__ import annotations

import math
from typing import Any

import pytest

import fastprof
from fastprof.analysis.layers.report import attached, folded, in_tree_order
from fastprof.errors import ReportError
from fastprof.model.numbers import without_index
from support.exports import Export
from support.kineto_files import KinetoFile

ENGINE = "autograd::engine::evaluate_function: "


class Run(Export):
    """`work(ns, *ranges)` launches a kernel of that time inside ranges, after the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.n_kernels = 0

    def work(self, ns: int, *ranges: str, tid: int = 1) -> Run:
        self.n_kernels += 1
        start = 1_000_000 * self.n_kernels
        self.nest(start, start + 1000, *ranges, tid=tid)
        self.launch(start + 500, start + 510, self.n_kernels, tid)
        self.kernel(start + 2000, start + 2000 + ns, self.n_kernels)
        return self


def forward(number: int, *layers: str) -> list[str]:
    return [f"layer:{layer}" for layer in layers] + [
        f"aten::relu, seq = {number}, op_id = {number}"
    ]


def backward(number: int) -> list[str]:
    node = f"ReluBackward0, seq = {number}, op_id = {100 + number}"
    return [ENGINE + node, node]


def net() -> Run:
    """Two steps of two blocks with a layer each and a head, the first block run once more."""
    run = Run()
    run.work(10, *forward(1, "net", "net.blocks.0"))
    run.work(20, *forward(2, "net", "net.blocks.0", "net.blocks.0.mlp"))
    run.work(40, *forward(3, "net", "net.blocks.1", "net.blocks.1.mlp"))
    run.work(5, *forward(4, "net", "net.head"))
    run.work(7, *forward(5, "net", "net.blocks.0"))
    run.work(100, *backward(3), tid=2)
    run.work(200, *backward(2), tid=2)
    run.work(3, "Optimizer.step#SGD.step")
    return run


def times(table: fastprof.Table, *names: str) -> dict[str, tuple[Any, ...]]:
    names = names or ("forward_ns", "backward_ns", "other_ns", "gpu_ns", "own_ns", "kernels")
    return {row["layer"]: tuple(row[name] for name in names) for row in table.rows()}


def test_a_layer_has_its_own_time_that_of_inner_layers_and_its_backward(opened: Any) -> None:
    table = opened(net()).layers()
    assert times(table) == {
        "net": (82, 300, 0, 382, 0, 7),
        "net:blocks.0": (37, 200, 0, 237, 17, 4),
        "net:blocks.0:mlp": (20, 200, 0, 220, 220, 2),
        "net:blocks.1": (40, 100, 0, 140, 0, 2),
        "net:blocks.1:mlp": (40, 100, 0, 140, 140, 2),
        "net:head": (5, 0, 0, 5, 5, 1),
        "(no layer)": (0, 0, 3, 3, 3, 1),
    }
    assert list(table["layer"]) == list(times(table))  # in order of execution
    assert [(row["depth"], row["name"]) for row in table.rows()] == [
        *((1, "net"), (2, "blocks.0"), (3, "mlp"), (2, "blocks.1"), (3, "mlp")),
        *((2, "head"), (0, "(no layer)")),
    ]
    assert table.total["gpu_ns"] == 385 == sum(table["own_ns"])
    assert table["share"][0] == pytest.approx(382 / 385)
    assert times(table, "with_backward_ns")["net"] == (382,)


def test_depth_adds_deeper_layers_to_their_ancestor(opened: Any) -> None:
    profile = opened(net())
    assert times(profile.layers(depth=2)) == {
        "net": (82, 300, 0, 382, 0, 7),
        "net:blocks.0": (37, 200, 0, 237, 237, 4),
        "net:blocks.1": (40, 100, 0, 140, 140, 2),
        "net:head": (5, 0, 0, 5, 5, 1),
        "(no layer)": (0, 0, 3, 3, 3, 1),
    }
    assert list(profile.layers(depth=1)["own_ns"]) == [382, 3]
    with pytest.raises(ReportError, match="depth: expected a positive number, found 0"):
        profile.layers(depth=0)


def test_fold_makes_one_row_of_repeated_layers(opened: Any) -> None:
    table = opened(net()).layers(fold=True)
    names = ("gpu_ns", "own_ns", "instances", "mean_ns", "min_ns", "max_ns", "std_ns")
    spread = math.sqrt((237 - 188.5) ** 2)
    assert times(table, *names) == {
        "net": (382, 0, 1, 382, 382, 382, 0),
        "net:blocks.*": (377, 17, 2, 188.5, 140, 237, pytest.approx(spread)),
        "net:blocks.*:mlp": (360, 360, 2, 180, 140, 220, 40),
        "net:head": (5, 5, 1, 5, 5, 5, 0),
        "(no layer)": (3, 3, 1, 3, 3, 3, 0),
    }


def test_flat_sorts_by_own_time_and_shows_paths(opened: Any) -> None:
    table = opened(net()).layers(flat=True)
    assert list(table["own_ns"]) == sorted(table["own_ns"], reverse=True)
    assert "net:blocks.0:mlp" in table.text()


def test_text_indents_names_until_rows_are_sorted(opened: Any) -> None:
    table = opened(net()).layers()
    names = [line.split("  ")[0] for line in table.text().splitlines()]
    assert names[:3] == ["layer", "net", ""]
    lines = table.text().splitlines()
    assert lines[2].startswith("  blocks.0 ") and lines[3].startswith("    mlp ")
    assert "net:blocks.0:mlp" in table.sort("gpu_ns").text()
    assert "| \u2003\u2003\u2003\u2003mlp |" in table.markdown()
    assert "\u2003\u2003blocks.0<" in table._repr_html_()


def test_the_roof_is_that_of_the_gpu(opened: Any) -> None:
    shapes = "aten::mm, seq = 1, op_id = 1, sizes = [[1000, 1000], [1000, 1000]]"
    profile = opened(Run().work(4_000_000, "layer:net", shapes).work(1_000_000))
    table = profile.layers(peak="fp32=1", bandwidth=1000)
    net, rest = table.rows()
    assert net["ideal_ns"] == pytest.approx(2_000_000)  # 2 GFLOP at 1 TFLOP/s
    assert (net["lost_ns"], net["peak_share"]) == (pytest.approx(2_000_000), pytest.approx(0.5))
    assert (rest["ideal_ns"], rest["peak_share"]) == (None, None)
    # The total's roof would be that of 80 % of the time.
    assert (table.total["ideal_ns"], table.total["peak_share"]) == (pytest.approx(2_000_000), None)
    assert list(table["covered_share"]) == [1.0, 0.0]
    assert any("1 TFLOP/s" in note for note in table.notes), table.notes
    for peak, expected in (("fp32=0.45", "above roof"), ("fp32=0.1", "cost too high")):
        (flag, _) = profile.layers(peak=peak)["flag"]
        assert flag == expected
    with pytest.raises(ReportError, match="unknown GPU"):
        profile.layers(gpu="no such GPU")


def test_where_selects_before_times_are_added(opened: Any) -> None:
    profile = opened(net())
    table = profile.layers(where={"layer": "*blocks.1*"})
    assert times(table, "gpu_ns") == {
        "net": (140,),
        "net:blocks.1": (140,),
        "net:blocks.1:mlp": (140,),
    }
    assert table.notes == ()
    assert profile.layers(where={"op": "nothing"}).n_rows == 0


def test_a_file_without_layers_has_one_row_and_advice(opened: Any) -> None:
    table = opened(Run().work(7, "aten::relu, seq = 1")).layers()
    assert times(table, "gpu_ns", "own_ns") == {"(no layer)": (7, 7)}
    assert table.notes == ("no layers: call fastprof.annotate_layers(model) in the program",)
    trace = KinetoFile().op(0, 90, "aten::relu").launch(10, 20, 1).kernel(30, 40, 1)
    (note,) = opened(trace).layers().notes
    assert "profile(with_stack=True)" in note


def test_an_empty_capture_has_an_empty_table_and_advice(opened: Any) -> None:
    table = opened(Run().launch(0, 1, 1, 1)).layers()
    assert table.n_rows == 0 and table.text().startswith("layer")
    assert table.notes[0].startswith("no kernels: record with nsys profile")


def test_modules_of_python_stacks_are_layers(opened: Any) -> None:
    trace = KinetoFile()
    for i in range(2):
        at = 1000 * i
        trace.python(at, at + 900, "nn.Module: Net_0")
        trace.python(at + 1, at + 800, "nn.Module: Linear_3")
        trace.op(at + 2, at + 700, "aten::linear").launch(at + 10, at + 20, i + 1)
        trace.kernel(at + 30, at + 40 + i, i + 1)
    assert times(opened(trace).layers(), "gpu_ns", "own_ns") == {
        "Net_0": (21, 0),
        "Net_0:Linear_3": (21, 21),
    }


def test_a_layer_without_kernels_of_its_own_stands_before_its_children(opened: Any) -> None:
    run = Run().work(1, *forward(1, "b", "b.x")).work(2, *forward(2, "a")).work(4, *forward(3, "b"))
    assert times(opened(run).layers(), "gpu_ns") == {"b": (5,), "b:x": (1,), "a": (2,)}


def test_names_from_the_file_cannot_control_the_terminal(opened: Any) -> None:
    text = opened(Run().work(1, *forward(1, "a\x1b[31m\nb"))).layers().text()
    assert "\x1b" not in text and len(text.splitlines()) == 3


def test_recomputed_work_counts_to_the_layer_of_the_forward_pass() -> None:
    forward_paths = [("net", "blocks.0", "mlp"), ("net", "blocks.1", "mlp"), ()]
    assert attached(
        [
            ("blocks.1", "mlp"),  # as torch.profiler records it
            ("net.blocks.0", "mlp"),  # as layer ranges are named
            ("mlp",),  # in several layers
            ("net", "blocks.0"),
            ("other",),
            (),
        ],
        forward_paths,
    ) == [
        ("net", "blocks.1", "mlp"),
        ("net", "blocks.0", "mlp"),
        ("mlp",),
        ("net", "blocks.0"),
        ("other",),
        (),
    ]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("layers.0", "layers.*"),
        ("layers.12.mlp", "layers.*.mlp"),
        ("block3", "block*"),
        ("Linear_12", "Linear_*"),
        ("blocks[3]", "blocks[*]"),
        ("Conv2d_7", "Conv2d_*"),
        ("Conv2d", "Conv2d"),
        ("0", "*"),
        ("head", "head"),
    ],
)
def test_indices_of_layers_are_folded(name: str, pattern: str) -> None:
    assert without_index(name) == pattern


def test_only_siblings_that_differ_in_an_index_are_folded() -> None:
    paths = [(), ("a",), ("a", "l.0"), ("a", "l.1"), ("a", "l.0", "x1"), ("a", "l.1", "x1")]
    paths += [("b",), ("b", "l.0"), ("Conv2d_0",), ("Conv3d_0",), ("a", "l.1", "x2")]
    result = folded(paths)
    assert result["a", "l.0", "x1"] == ("a", "l.*", "x*") == result["a", "l.1", "x2"]
    assert result["b", "l.0"] == ("b", "l.0")
    assert result["Conv2d_0",] == ("Conv2d_0",) and result["Conv3d_0",] == ("Conv3d_0",)


def test_siblings_are_in_order_of_their_first_launch() -> None:
    first = {("b",): 1, ("a",): 5, ("b", "y"): 3, ("b", "x"): 1, (): 0, ("c",): 5}
    assert in_tree_order(first) == [("b",), ("b", "x"), ("b", "y"), ("a",), ("c",), ()]
