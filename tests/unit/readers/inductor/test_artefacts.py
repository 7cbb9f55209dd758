"""Names of kernels, and graphs of the parts that Inductor writes."""

from __future__ import annotations

import json

import pytest

from fastprof.readers.inductor.artefacts import LAYERS, GeneratedParts, graph_of, split_handle

GRAPH = """
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8]"):
        # File: /home/me/model.py:12 in forward, code: y
        exp: "f32[8]" = torch.ops.aten.exp.default(x)
        return (exp,)
"""


@pytest.mark.parametrize(
    ("text", "name", "handle"),
    [
        ("triton_poi_fused_add_0:3", "triton_poi_fused_add_0", 3),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0", -1),
        ("extern_kernels.addmm:2", "aten::addmm", 2),
        ("extern_kernels.bias_addmm:2", "aten::addmm", 2),
        ("torch.ops.aten.mul.Tensor:1", "aten::mul", 1),
        ("torch.ops.vllm.attention.default:11", "vllm::attention", 11),
        ("aten.convolution:4", "aten::convolution", 4),
    ],
)
def test_names_are_those_that_a_profiler_records(text: str, name: str, handle: int) -> None:
    assert split_handle(text) == (name, handle)


def test_calls_are_those_of_the_generated_code_in_order() -> None:
    """Mappings may also have the kernels of the forward graph."""
    code = (
        "# [Provenance debug handles] b:7\n        # [Provenance debug handles] a:6\n"
        "        a(x)  # [Provenance debug handles] c:8\n"
    )
    mappings = json.dumps({"cppCodeToPost": {"x:1": ["exp"], "a:6": ["exp"], "b:7": []}})
    graph = graph_of(GeneratedParts("", graph=GRAPH, code=code, mappings=mappings), "key")
    assert graph is not None and graph.key == "key"
    assert [(k.name, k.handle, k.nodes) for k in graph.kernels] == [
        ("b", 7, ()), ("a", 6, ("exp",)),
    ]  # fmt: skip


def test_layers_and_stacks_of_nodes() -> None:
    stack = '  File "/home/me/train.py", line 3, in f\n  File "/home/me/model.py", line 12, in g\n'
    mappings = json.dumps({"cppCodeToPost": {"a:1": ["exp"]}, LAYERS: {"exp": ["net", "act"]}})
    graph = graph_of(
        GeneratedParts("", graph=GRAPH, mappings=mappings, stacks=json.dumps({"a:1": [stack]}))
    )
    assert graph is not None
    assert graph.nodes["exp"].frames == ("/home/me/train.py:3", "/home/me/model.py:12")
    assert graph.nodes["exp"].layers == ("net", "act")


def test_kernel_information_has_nodes_and_stacks() -> None:
    told = {"stack_traces": ['File "/m.py", line 5, in f'], "post_grad_nodes": ["exp"]}
    graph = graph_of(
        GeneratedParts("", graph=GRAPH, information=json.dumps({"cpp_fused_exp_0:1": told}))
    )
    assert graph is not None
    (kernel,) = graph.kernels
    assert kernel.nodes == ("exp",) and kernel.stacks == (("/m.py:5",),)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"cppCodeToPost": 3}', '{"cppCodeToPost": []}'])
def test_damaged_mappings_are_no_graph(text: str) -> None:
    assert graph_of(GeneratedParts("", graph=GRAPH, mappings=text)) is None
