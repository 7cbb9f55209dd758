"""Trees of GPU time of generated captures, against hand-computed times."""

from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.analysis.saturated import across, in_subtrees, scattered
from fastprof.analysis.stacks.tree import Stacks, stacks
from fastprof.errors import ReportError
from support.exports import Export

ENGINE = "autograd::engine::evaluate_function: ReluBackward0, seq = {0}, op_id = {1}"
NODE = "ReluBackward0, seq = {0}, op_id = {1}"
RELU = "aten::relu, seq = {0}, op_id = {0}"


def capture(*work: tuple[int, list[str], int]) -> Export:
    """A kernel for each (ns, ranges around its launch, thread)."""
    export = Export()
    for number, (ns, ranges, tid) in enumerate(work, 1):
        start = 1_000_000 * number
        export.nest(start, start + 1000, *ranges, tid=tid)
        export.launch(start + 500, start + 510, number, tid)
        export.kernel(start + 2000, start + 2000 + ns, number)
    return export


@pytest.fixture
def net(tmp_path: Path) -> fastprof.Profile:
    """Two layers, each forward and backward, in two steps, and a kernel outside all ranges."""
    work = []
    for step in range(2):
        one, two = 1 + 2 * step, 2 + 2 * step
        work += [
            (10, [f"step {step}", "layer:net", "layer:net.a", RELU.format(one)], 1),
            (20, [f"step {step}", "layer:net", "layer:net.b", RELU.format(two)], 1),
            (300, [ENGINE.format(two, 10 + two), NODE.format(two, 10 + two)], 2),
            (400, [ENGINE.format(one, 10 + one), NODE.format(one, 10 + one)], 2),
        ]
    work.append((1, [], 1))
    return fastprof.open(capture(*work).write(tmp_path / "net.sqlite"), copies=True)


def times(tree: Stacks, direction: str | None = None) -> dict[str, int]:
    inside = tree.inclusive("ns", direction)
    return {"/".join(tree.chain(row)): int(inside[row]) for row in range(len(tree))}


def test_backward_work_is_inside_the_layers_of_its_forward_call(net: fastprof.Profile) -> None:
    tree = stacks(net, leaves=["op"])
    assert times(tree) == {
        "": 1461,
        "net": 1460,
        "net/a": 820,
        "net/a/relu": 820,
        "net/b": 640,
        "net/b/relu": 640,
        "(no layer)": 1,
    }
    assert times(tree, "forward")["net/a"] == 20
    assert times(tree, "backward")["net/a"] == 800
    assert times(tree, "other") == dict.fromkeys(times(tree), 0) | {"": 1, "(no layer)": 1}
    assert tree.type.array().tolist() == ["all", "layer", "layer", "op", "layer", "op", "layer"]
    assert tree.own("ns").tolist() == [0, 0, 0, 820, 0, 640, 1]
    assert tree.inclusive("calls").tolist() == [8, 8, 4, 4, 4, 4, -1]
    assert tree.inclusive("kernels").tolist() == [9, 8, 4, 4, 4, 4, 1]


def test_ranges_that_differ_in_a_number_are_one_node(net: fastprof.Profile) -> None:
    result = times(stacks(net, "path", leaves=[]))
    assert result["step */net/net.a"] == 20
    assert result["step *"] == 60
    assert result["(no range)"] == 1


def test_annotations_of_calls_are_the_names_of_functions(tmp_path: Path) -> None:
    trace = "{'traceMarker': ['train.py:3']}"
    calls = [
        f"{{'mod': 'torch', 'op': 'relu', 'args': [{{'name': '', 'type': 'int', 'value': {i}}}]}}"
        for i in (7, 8)
    ]
    export = capture(*((5, ["mine", trace, call, "aten::relu"], 1) for call in calls))
    profile = fastprof.open(export.write(tmp_path / "net.sqlite"))
    assert times(stacks(profile, "path", leaves=[])) == {
        "": 10, "mine": 10, "mine/torch.relu": 10, "mine/torch.relu/aten::relu": 10,
    }  # fmt: skip
    types = stacks(profile, "path", leaves=[]).type.array().tolist()
    assert types == ["all", "user", "annotation", "operator"]


def test_without_lines_all_work_is_outside(net: fastprof.Profile) -> None:
    assert times(stacks(net, "lines", leaves=[])) == {"": 1461, "(no line)": 1461}
    assert times(stacks(net, "stack", leaves=[])) == {"": 1461, "(no line)": 1461}


def test_where_selects_kernels(net: fastprof.Profile) -> None:
    tree = stacks(net, leaves=[], where={"layer": "net:a"})
    assert times(tree) == {"": 820, "net": 820, "net/a": 820}


@pytest.mark.parametrize("kind", ["layers", "path"])
def test_steps_give_the_time_per_step(tmp_path: Path, kind: str) -> None:
    work = [(10 + step, [f"step {step}", RELU.format(step)], 1) for step in range(4)]
    profile = fastprof.open(capture(*work).write(tmp_path / "net.sqlite"))
    tree = stacks(profile, kind, steps="range")
    assert (tree.n_windows, tree.inclusive("step_ns")[0]) == (3, 12)
    assert tree.inclusive("step_ns", "forward")[0] == profile.layers(steps="range").total["step_ns"]


def test_small_siblings_become_one_node(net: fastprof.Profile) -> None:
    tree = stacks(net, leaves=["op"]).pruned(0.5)
    assert times(tree) == {
        "": 1461,
        "net": 1460,
        "net/a": 820,
        "net/a/relu": 820,
        "(1 smaller)": 1,
        "net/(1 smaller)": 640,
    }
    assert tree.inclusive("calls").tolist() == [8, 8, 4, 4, -1, 4]
    assert times(tree, "backward")["net/(1 smaller)"] == 600
    assert [len(each) for each in (tree, tree.dominant["phase"], tree.type)] == [6, 6, 6]


def test_a_node_has_the_phase_of_at_least_half_of_its_time(net: fastprof.Profile) -> None:
    tree = stacks(net, leaves=[])
    assert tree.dominant["phase"].array().tolist() == ["backward"] * 4 + ["other"]
    forward = stacks(net, leaves=[], where={"dir": "fprop"})
    assert forward.dominant["phase"].array().tolist() == ["forward"] * 4
    assert forward.dominant["kind"].at(0) == "gemm"


def test_names_that_look_like_markup_are_names(tmp_path: Path) -> None:
    name = "</script><img onerror=alert(1)>;a\nb"
    path = capture((5, [f"layer:{name}"], 1)).write(tmp_path / "net.sqlite")
    assert stacks(fastprof.open(path), leaves=[]).chain(1) == [name]


def test_a_capture_without_kernels_is_a_root(tmp_path: Path) -> None:
    export = Export().push_pop(1, 2, "step", tid=1)
    path = export.write(tmp_path / "net.sqlite")
    for kind in ("layers", "path", "lines", "stack"):
        tree = stacks(fastprof.open(path), kind)
        assert times(tree) == times(tree.pruned()) == {"": 0}
        assert tree.inclusive("flops").tolist() == [-1]


def test_unknown_kinds_keys_and_measures_are_named(net: fastprof.Profile) -> None:
    with pytest.raises(ReportError, match="unknown kind of stacks 'layer'; did you mean layers"):
        stacks(net, "layer")
    with pytest.raises(ReportError, match="unknown key 'kernal'; did you mean kernel"):
        stacks(net, leaves=["kernal"])
    with pytest.raises(ReportError, match="unknown measure 'flop'; did you mean flops"):
        stacks(net).own("flop")


def test_sums_end_at_the_largest_integer() -> None:
    parent = np.array([-1, 0, 0, 2], np.int32)
    own = np.array([0, 1 << 62, 1 << 62, 5])
    assert in_subtrees(parent, own).tolist() == [2**63 - 1, 1 << 62, (1 << 62) + 5, 5]
    assert in_subtrees(parent, np.array([0.5, 1, 2, 4])).tolist() == [7.5, 1, 6, 4]
    assert scattered(own, np.array([0, 1, 1, 0]), (2,)).tolist() == [5, 2**63 - 1]
    assert across(own.reshape(2, 2)).tolist() == [1 << 62, (1 << 62) + 5]
    assert across(own[1:3].reshape(1, 2)).tolist() == [2**63 - 1]
