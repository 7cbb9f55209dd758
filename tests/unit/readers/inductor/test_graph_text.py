"""The text of a compiled graph: nodes, tensors, source lines."""

from __future__ import annotations

import pytest

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.readers.inductor.graph_text import functions_of, nodes_of, stack_of

GRAPH = """
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[s0, 64][64, 1]cuda:0", arg1_1: "bf16[64][1]cuda:0", arg2_1: "Sym(s0)"):
        # File: /home/me/model.py:12 in forward, code: h = x * w
        mul: "f32[s0, 64][64, 1]cuda:0" = torch.ops.aten.mul.Tensor(arg0_1, arg1_1);  arg1_1 = None

        # Annotation: {'module_fqn': 'layers.0.mlp'} File: /home/me/model.py:13 in forward, code: h = f(h)
        add: "f32[4*s0, 16][16, 1]cuda:0" = torch.ops.vllm.f.default(mul, alpha = 2, dims = [1, 2]);  mul = None
        full = torch.ops.aten.full.default([2], 1, dtype = torch.float32, device = device(type='cuda', index=0))
        getitem: "i64[2][1]cuda:0" = add[0]

        # No stacktrace found for following nodes
        exp: "f32[]" = torch.ops.aten.exp.default(arg0_1)
        return (add,)
"""  # noqa: E501


def test_nodes_have_their_operator_tensors_and_line() -> None:
    nodes = nodes_of(GRAPH, {"s0": 8})
    assert list(nodes) == ["mul", "add", "full", "getitem", "exp"]
    mul = nodes["mul"]
    assert (mul.call.mod, mul.call.op) == ("aten", "mul")
    assert [arg.value for arg in mul.call.args] == [
        Tensor((8, 64), "float32"), Tensor((64,), "bfloat16"),
    ]  # fmt: skip
    assert mul.call.result == Tensor((8, 64), "float32")
    assert mul.frames == ("/home/me/model.py:12",) and mul.layers == ()


def test_named_arguments_other_namespaces_and_annotated_modules() -> None:
    add = nodes_of(GRAPH, {"s0": 8})["add"]
    assert (add.call.mod, add.call.op) == ("vllm", "f")
    assert [(arg.name, arg.value) for arg in add.call.args[1:]] == [("alpha", 2), ("dims", (1, 2))]
    assert add.call.result == Tensor((32, 16), "float32")
    assert add.layers == ("layers.0.mlp",)


def test_symbols_without_a_value_and_values_of_other_kinds() -> None:
    nodes = nodes_of(GRAPH)
    assert nodes["mul"].call.result == Tensor((128, 64), "float32")
    assert [arg.value for arg in nodes["full"].call.args] == [(2,), 1, UNKNOWN, UNKNOWN]
    assert nodes["exp"].frames == () and nodes["exp"].call.result == Tensor((), "float32")


@pytest.mark.parametrize("text", ["", "no graph (", "x = 1\n", "class A:\n    pass\n", "(" * 9999])
def test_other_text_has_no_nodes(text: str) -> None:
    assert nodes_of(text) == {}


def test_functions_methods_and_operators_of_the_program() -> None:
    text = """
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[32, 64]"):
        l_x_ = L_x_
        h: "f32[32, 64]" = torch._C._nn.gelu(l_x_)
        mul: "f32[32, 64]" = h * 2;  h = None
        x: "f32[32, 64]" = l_x_ @ mul
        s: "f32[]" = x.sum()
        return (s,)
"""
    assert functions_of(text) == {"h": "gelu", "mul": "mul", "x": "matmul", "s": "sum"}


def test_stacks_are_lines_outermost_first() -> None:
    text = '  File "/a.py", line 17, in forward\n    x = b(x)\n  File "/b c.py", line 9, in f\n'
    assert stack_of(text) == ("/a.py:17", "/b c.py:9")
