"""Annotations of nodes of CUDA graphs: what a program said while it captured them.

torch's `mark_kernels` gives the nodes of a capture fields, which the exporter writes into the args
of replayed kernels, as texts: `name`, `layer`, `module_fqn`, `str` (of a plain text), those of a
collective as the profiler records it, or any others. Sources: torch/cuda/_graph_annotations.py,
torch/cuda/_annotate_cuda_graph_trace.py (2.12, 2.13), `export_chrome_trace` and
torch/distributed/_cuda_graph_annotations.py (later); torchtitan writes `module_fqn`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.model.markers.collectives import Collective, recorded_in

# Names of collectives in an annotation that has `name` instead of `Collective name`.
_COLLECTIVES: Final = {
    "all_reduce": "allreduce", "allreduce": "allreduce", "all_gather": "_allgather_base",
    "allgather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base",
    "all_to_all": "all_to_all", "broadcast": "broadcast", "reduce": "reduce", "send": "send",
    "recv": "recv", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
}  # fmt: skip
_OF_COLLECTIVE: Final = ("dtype", "Group size", "In msg nelems", "Out msg nelems")
_MOST_DIGITS: Final = 18
# Modules of torch that annotate CUDA graphs, since 2.12; the first is the name of later versions.
MODULES_OF_TORCH: Final = ("torch.cuda.graph_annotations", "torch.cuda._graph_annotations")
MODULE: Final = "module_fqn"
# What `annotate_layers` adds: the pass that the node is part of.
DIRECTION: Final = "direction"
FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class Annotation:
    """The annotation of a node.

    Parameters
    ----------
    layers : the module or layer, with those around it as far as it names them, outermost first
    collective : the collective that the node is part of; None for other work
    fields : all fields as (name, text)
    """

    layers: tuple[str, ...]
    collective: Collective | None
    fields: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return json.dumps(dict(self.fields))

    @property
    def direction(self) -> str:
        """FORWARD or BACKWARD, "" if the annotation does not say."""
        return next((text for name, text in self.fields if name == DIRECTION), "")


def read_annotation(pairs: str) -> Annotation | None:
    """Read `"key":value` pairs; None if they are damaged or empty."""
    try:
        values = json.loads(f"{{{pairs}}}")
    except (ValueError, RecursionError):
        return None
    fields = {name: _text(value) for name, value in values.items() if value not in (None, "")}
    if not fields:
        return None
    collective = _collective(fields)
    return Annotation(_layers(fields, collective), collective, tuple(fields.items()))


def pairs_of(annotations: Iterable[Any]) -> str:
    """The pairs of the annotations of one node, as torch's exporter merges them: later ones win.

    annotations : dictionaries, or other values, which become the field `annotation`
    """
    merged: dict[str, str] = {}
    for annotation in annotations:
        if isinstance(annotation, dict):
            merged.update((str(name), _text(value)) for name, value in annotation.items())
        else:
            merged["annotation"] = _text(annotation)
    return json.dumps(merged)[1:-1]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)


def _collective(fields: Mapping[str, str]) -> Collective | None:
    values: dict[str, Any] = {name: _number(text) for name, text in fields.items()}
    if "Collective name" not in values and any(name in fields for name in _OF_COLLECTIVE):
        name = _COLLECTIVES.get(fields.get("name", "").lower())
        if name is not None:
            values["Collective name"] = name
    if isinstance(values.get("dtype"), str):
        values["dtype"] = values["dtype"].removeprefix("torch.")
    return recorded_in(values)


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else text


def _layers(fields: Mapping[str, str], collective: Collective | None) -> tuple[str, ...]:
    """The layers: `module_fqn`, else `layer` and `name`; `layers.0.mlp` is `layers.0`, `mlp`."""
    if fields.get(MODULE):
        return module_path(fields[MODULE])
    layer = fields.get("layer", "")
    around = (f"layer {layer}" if layer.isdecimal() else layer,) if layer else ()
    names = (fields.get(key) for key in ("name", "str", "annotation"))
    name = next(filter(None, names), "") if collective is None else ""
    return (*around, name) if name else around


def module_path(name: str) -> tuple[str, ...]:
    """The modules of a qualified name; a number is part of the module before it."""
    path: list[str] = []
    for part in filter(None, name.split(".")):
        if part.isdecimal() and path:
            path[-1] += f".{part}"
        else:
            path.append(part)
    return tuple(path)
