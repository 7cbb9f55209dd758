"""Annotations of nodes of CUDA graphs in a file of their own.

torch 2.12 and 2.13 keep them in the program: `torch.cuda._graph_annotations.get_kernel_annotations`
returns a dictionary of lists by the id of the node, which a trace records as `graph node id`. The
file is a pickle of that dictionary, or the same as JSON. Of pickles, only plain data is read: what
would call anything else is refused before it does.
"""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
from pathlib import Path
from typing import Any, Final

import numpy as np

from fastprof._system import memory
from fastprof.errors import BadInputError
from fastprof.model.markers.annotations import pairs_of
from fastprof.model.trace import Recording

_MOST_DIGITS: Final = 20
_OF_BYTE: Final = 20  # bytes of memory per byte of the file, at least


def read(path: str | os.PathLike[str]) -> dict[int, str]:
    """The pairs of each node by its id, see `model.markers.annotations.pairs_of`.

    Raises
    ------
    BadInputError
        The file cannot be read, is damaged, or contains something else.
    NotEnoughMemoryError
        It is too large.
    """
    name = os.fsdecode(path)
    try:
        memory.require(name, os.path.getsize(path) * _OF_BYTE)
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadInputError(f"{name}: cannot be read: {error.strerror}") from error
    is_json = data.lstrip()[:1] == b"{"
    values = _json(data) if is_json else _unpickled(data, name)
    result = pairs_of_nodes(values)
    if not result:
        raise BadInputError(
            f"{name}: expected annotations of CUDA graphs, lists by id of the node, found "
            f"{type(values).__name__}; write pickle.dumps(dict(get_kernel_annotations()))"
        )
    return result


def pairs_of_nodes(values: Any) -> dict[int, str]:
    """The pairs of each node of a dictionary of lists by id; empty for anything else."""
    members = values.items() if isinstance(values, dict) else ()
    return {
        int(key): pairs_of(each)
        for key, each in members
        if str(key).isdecimal() and len(str(key)) < _MOST_DIGITS and isinstance(each, list)
    }


def annotate(recording: Recording, pairs_of_node: dict[int, str]) -> None:
    """Set the annotations of the nodes of graphs, in place; those in the trace have priority.

    pairs_of_node : the pairs by the id of the node, as `graph node id` of the trace
    """
    configs = recording.kernels.configs
    number = {node: len(recording.strings) + i for i, node in enumerate(pairs_of_node)}
    recording.strings += pairs_of_node.values()
    own = configs.annotation
    of_node = [number.get(node, -1) if node > 0 else -1 for node in configs.graph_node.tolist()]
    result = np.array(of_node, np.int32)
    configs.annotation = result if own is None else np.where(own >= 0, own, result).astype(np.int32)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


class _Unpickler(pickle.Unpickler):
    """Loads plain data, and the dictionary of lists that torch keeps."""

    def find_class(self, module: str, name: str) -> Any:
        """The only types that a file may name."""
        types = {
            ("collections", "defaultdict"): collections.defaultdict,
            ("builtins", "list"): list,
        }
        if (module, name) in types:
            return types[module, name]
        raise pickle.UnpicklingError(f"refused, since it imports {module}.{name}")


def _unpickled(data: bytes, name: str) -> Any:
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # of damaged files, of any type
        raise BadInputError(f"{name}: expected a pickle of plain data: {error}") from None
