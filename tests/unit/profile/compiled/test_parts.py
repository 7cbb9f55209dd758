"""The shares of a kernel's work by node."""

from __future__ import annotations

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.model.compiled import CompiledGraph, GraphKernel, Node
from fastprof.profile.compiled.parts import Share, merged, shares_of
from support.compiled_programs import MODEL, graphs

SQUARE = Tensor((64, 64), "float32")
ROW = Tensor((64,), "float32")


def node(op: str, *tensors: Tensor, result: Tensor = SQUARE, line: int = 1) -> Node:
    args = tuple(Arg("", tensor) for tensor in tensors)
    return Node(Call("aten", op, args, result), "", (f"m.py:{line}",))


def shares(name: str, **nodes: Node) -> dict[str, float]:
    kernel = GraphKernel(name, 1, tuple(nodes))
    graph = CompiledGraph("", "", (kernel,), nodes)
    return {share.op: share.weight for share in shares_of(graph, kernel)}


def test_nodes_weigh_the_bytes_that_they_would_move_alone() -> None:
    """An add reads two and writes one; a relu reads one and writes one; a view moves nothing."""
    result = shares(
        "triton_poi_fused_0",
        add=node("add", SQUARE, SQUARE),
        relu=node("relu", SQUARE),
        view=node("view", SQUARE),
    )
    assert result == {"add": pytest.approx(3 / 5), "relu": pytest.approx(2 / 5)}


def test_nodes_of_a_product_weigh_their_flops() -> None:
    """2 x 64 x 64 x 64 of the product, 64 x 64 of the relu."""
    result = shares(
        "triton_tem_fused_mm_relu_0", mm=node("mm", SQUARE, SQUARE), relu=node("relu", SQUARE)
    )
    assert result["mm"] == pytest.approx(128 / 129)


def test_operators_without_a_formula_weigh_their_tensors() -> None:
    result = shares("triton_poi_0", unheard=node("unheard_of", SQUARE), relu=node("relu", SQUARE))
    assert result == {"unheard_of": pytest.approx(0.5), "relu": pytest.approx(0.5)}


def test_nodes_that_move_nothing_count_alike() -> None:
    result = shares("triton_poi_0", view=node("view", SQUARE), permute=node("permute", SQUARE))
    assert result == {"view": pytest.approx(0.5), "permute": pytest.approx(0.5)}


def test_an_operator_keeps_its_name() -> None:
    assert shares("aten::mm", mm=node("mm", SQUARE, SQUARE)) == {"": 1.0}


def test_stacks_stand_for_nodes_that_are_not_recorded() -> None:
    kernel = GraphKernel("triton_poi_0", 1, (), (("m.py:1",), ("m.py:2",)))
    result = shares_of(CompiledGraph("", "", (kernel,), {}), kernel)
    assert result == (Share(("m.py:1",), (), "", 0.5), Share(("m.py:2",), (), "", 0.5))


def test_a_kernel_without_nodes_and_stacks_has_no_parts() -> None:
    kernel = GraphKernel("triton_poi_0")
    assert shares_of(CompiledGraph("", "", (kernel,), {}), kernel) == ()


def test_equal_parts_are_one_and_the_largest_is_first() -> None:
    small, large = Share(("a",), (), "x", 1.0), Share(("b",), (), "x", 3.0)
    result = merged([small, large, small, Share(("c",), (), "x", 0.0)])
    assert [(share.frames, share.weight) for share in result] == [(("b",), 0.6), (("a",), 0.4)]


def test_shares_of_a_recorded_kernel_sum_to_one_and_name_its_lines() -> None:
    forward = graphs()[0]
    kernel = forward.kernels[2]  # gelu, mul, add of one block, layer_norm of the next
    result = shares_of(forward, kernel)
    assert sum(share.weight for share in result) == pytest.approx(1)
    lines = {(share.frames[-1].removeprefix(MODEL), share.op) for share in result}
    assert lines == {(":9", "layer_norm"), (":10", "gelu"), (":11", "mul"), (":11", "add")}
