"""The layers of compiled code: adds them to what Inductor records about its kernels.

With provenance tracking, Inductor asks `torch.fx.traceback.get_graph_provenance_json` for the nodes
of each graph, and keeps what `torch._inductor.debug.dump_inductor_provenance_info` returns with the
compiled graph, also in its cache (torch 2.9 to 2.13). Nodes have the modules of their forward call.
Versions without these functions, and any failure, leave everything as it is.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any, Final

from torch.fx import traceback

from fastprof.model.markers.annotations import module_path
from fastprof.readers.inductor.artefacts import LAYERS

_NODES: Final = "get_graph_provenance_json"
_MAPPINGS: Final = "dump_inductor_provenance_info"
_DEBUG: Final = "torch._inductor.debug"
_ITEM: Final = re.compile(r"\[['\"]?([^'\"\]]*)['\"]?\]")
_OF_WRAPPERS: Final = frozenset({"_orig_mod", "_modules"})


def keep_layers() -> None:
    """Let graphs that Inductor compiles from now on have the layers of their nodes."""
    nodes_of: Callable[..., Any] | None = getattr(traceback, _NODES, None)
    if nodes_of is None or hasattr(nodes_of, "__wrapped__"):
        return
    layers: dict[str, list[str]] = {}

    @functools.wraps(nodes_of)
    def nodes(graph: Any, *args: Any, **named: Any) -> Any:
        layers.clear()
        try:
            layers.update(layers_of(graph))
            _add_to_mappings(layers)
        except Exception:  # the program goes on without layers
            layers.clear()
        return nodes_of(graph, *args, **named)

    setattr(traceback, _NODES, nodes)


def _add_to_mappings(layers: dict[str, list[str]]) -> None:
    """Wrap the function that returns the mappings, once."""
    debug = sys.modules.get(_DEBUG)
    mappings_of = getattr(debug, _MAPPINGS, None)
    if mappings_of is None or hasattr(mappings_of, "__wrapped__"):
        return

    @functools.wraps(mappings_of)
    def mappings(*args: Any, **named: Any) -> Any:
        result = mappings_of(*args, **named)
        if isinstance(result, dict) and layers:
            result[LAYERS] = dict(layers)
            result.update({} if "cppCodeToPost" in result else _of_kernels(debug))
        return result

    setattr(debug, _MAPPINGS, mappings)


def _of_kernels(debug: Any) -> dict[str, Any]:
    """The nodes of kernels, which torch omits for a backward graph that it compiles late."""
    own = getattr(debug, "_inductor_triton_kernel_to_post_grad_node_info", None)
    return {"cppCodeToPost": dict(own)} if isinstance(own, dict) and own else {}


def layers_of(graph: Any) -> dict[str, list[str]]:
    """The layers around each node of a graph, outermost first; those of nodes without are omitted.

    `L['self'].blocks.0.fc` is `blocks.0`, `fc`; the compiled module itself is the layer around all.
    """
    result = {}
    for node in graph.nodes:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        paths = [entry[0] for entry in stack.values()]
        path = _qualified(paths[-1]) if paths else ""
        if path:
            result[node.name] = list(module_path(path))
    return result


def _qualified(path: str) -> str:
    """The qualified name of a module in the compiled one, of the expression by which Dynamo found
    it: `L['self']._modules['blocks']._modules['0']`, `L['self'].blocks.0`, `L['fn']`."""
    head, dot, rest = path.partition(".")
    if not head.startswith(("L[", "L__", "G[")):
        rest = path
    elif not dot:
        return ""
    parts = _ITEM.sub(r".\1", rest).split(".")
    return ".".join(part for part in parts if part and part not in _OF_WRAPPERS)
