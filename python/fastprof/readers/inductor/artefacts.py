"""Compiled graphs from the parts that Inductor writes of each.

The parts are files of its debug mode, or records of torch's structured log: the graph after all
passes, the generated code, the nodes of each kernel (`inductor_provenance_tracking_node_mappings`),
the stacks of each kernel (`inductor_provenance_tracking_kernel_stack_traces`). Kernels have the
names `kernel:handle`, those of torch 2.8 and earlier `kernel`; the handle numbers the calls.
Source: torch/_inductor/debug.py, compile_fx.py and codegen/wrapper.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.compiled import CompiledGraph, GraphKernel, Node
from fastprof.readers.inductor.graph_text import (
    functions_of,
    nodes_of,
    stack_of,
    with_stacks,
)

LAYERS: Final = "fastprof_layers"
"""The key of the layers by node that `fastprof run` adds to the mappings."""

_HANDLES: Final = regex(r"^\s*(?:#|//) \[Provenance debug handles\] (.+)$")
_HANDLE: Final = regex(r"(.+):(\d{1,9})\Z")
_SEPARATOR: Final = regex(r",\s*(?=[\w.]+:\d)")
_OPERATOR: Final = regex(r"torch\.ops\.(\w+)\.(\w+)(?:\.\w+)?\Z|aten\.(\w+)(?:\.\w+)?\Z")
_EXTERN: Final = "extern_kernels."
_BIAS: Final = "bias_"  # `extern_kernels.bias_addmm` calls torch.addmm
_MOST_PLACE: Final = 200


@dataclass()
class GeneratedParts:
    """The parts of one compiled graph; empty where not recorded.

    Parameters
    ----------
    place : see `CompiledGraph`
    graph : text of the graph after all passes
    program : text of the graph before autograd, of which the mappings tell the nodes
    code : the generated code
    mappings, stacks, information : the JSON of the mappings, of the stacks by kernel, and of
        `kernel_information.json`, which has both
    symbols : the values of symbolic extents
    """

    place: str
    graph: str = ""
    program: str = ""
    code: str = ""
    mappings: str = ""
    stacks: str = ""
    information: str = ""
    symbols: dict[str, int] = field(default_factory=dict)

    @property
    def has_kernels(self) -> bool:
        """Whether any part names kernels."""
        return bool(self.mappings or self.stacks or self.information)


def graph_of(parts: GeneratedParts, key: str = "") -> CompiledGraph | None:
    """The compiled graph of some parts; None if they name no kernel."""
    mappings = _object(parts.mappings)
    information = _object(parts.information)
    nodes_of_kernel = _lists(mappings.get("cppCodeToPost"))
    stacks = {name: _stacks(texts) for name, texts in _lists(_object(parts.stacks)).items()}
    for name, told in information.items():
        if isinstance(told, dict):
            nodes_of_kernel.setdefault(name, _texts(told.get("post_grad_nodes")))
            stacks.setdefault(name, _stacks(_texts(told.get("stack_traces"))))
    called = list(_called_in(parts.code)) or list({**nodes_of_kernel, **stacks})
    kernels = tuple(
        GraphKernel(*split_handle(name), tuple(nodes_of_kernel.get(name, ())), stacks.get(name, ()))
        for name in called
    )
    if not kernels:
        return None
    nodes = _nodes(parts, mappings)
    of_kernels = {name: kernel.stacks for kernel in kernels for name in kernel.nodes}
    nodes = {name: with_stacks(node, of_kernels.get(name, ())) for name, node in nodes.items()}
    return CompiledGraph(key, parts.place[:_MOST_PLACE], kernels, nodes)


def split_handle(text: str) -> tuple[str, int]:
    """The name of a kernel as a profiler records its call, and its handle, -1 for none.

    `triton_poi_fused_add_0:3`, `extern_kernels.addmm:2`, `torch.ops.aten.mul.Tensor:1`.
    """
    match = _HANDLE.match(text)
    name, handle = (match[1], int(match[2])) if match is not None else (text, -1)
    if name.startswith(_EXTERN):
        return f"aten::{name.removeprefix(_EXTERN).removeprefix(_BIAS)}", handle
    operator = _OPERATOR.match(name)
    if operator is None:
        return name, handle
    return f"{operator[1] or 'aten'}::{operator[2] or operator[3]}", handle


def _called_in(code: str) -> Iterator[str]:
    """The kernels with handles, in the order of the calls in the generated code."""
    for line in code.split("\n") if "[Provenance" in code else ():
        match = _HANDLES.match(line)
        if match is not None:
            yield from _SEPARATOR.split(match[1].strip())


def _nodes(parts: GeneratedParts, mappings: Mapping[str, Any]) -> dict[str, Node]:
    """The nodes of the graph with the operators of the program and the layers."""
    nodes = nodes_of(parts.graph, parts.symbols)
    functions = functions_of(parts.program)
    before = _lists(mappings.get("postToPre"))
    layers = _lists(mappings.get(LAYERS))
    result = {}
    for name, node in nodes.items():
        ops = {functions[each] for each in before.get(name, ()) if functions.get(each)}
        op = next(iter(ops)) if len(ops) == 1 else ""
        result[name] = replace(node, op=op, layers=tuple(layers.get(name, ())) or node.layers)
    return result


def _object(text: str) -> dict[str, Any]:
    """A JSON object; empty if the text is none."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lists(value: Any) -> dict[str, list[str]]:
    members = value if isinstance(value, dict) else {}
    return {name: _texts(each) for name, each in members.items()}


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _stacks(texts: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(filter(None, map(stack_of, texts))))
