"""GPU work as the report names it: kernels, graphs, copies, memsets, and what launched it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._take import distinct, take
from fastprof.columns import Ints, Values
from fastprof.names import short_name
from fastprof.trace import COPY_KINDS, Activity, Trace


def names(trace: Trace) -> tuple[Values, Values]:
    """Long and short name of every row.

    A graph is `CUDA graph 3`, a copy `[CUDA memcpy HtoD]`, a memset `[CUDA memset]`.
    """
    kernels = trace.kernels
    used, place = distinct(kernels.name, len(trace.strings))
    texts = [trace.strings[i] if i >= 0 else None for i in used]
    if np.any(kernels.kind != Activity.KERNEL):
        place = place.copy()
        for rows, text in _unnamed(trace):
            place[rows] = len(texts)
            texts.append(text)
    ids, long_names = _without_none(place, texts)
    shorts: dict[str, int] = {}
    of_long = [shorts.setdefault(_short(text), len(shorts)) for text in long_names]
    return Values(ids, long_names), Values(take(np.array(of_long, np.int32), ids), list(shorts))


def _short(name: str) -> str:
    return name.replace(" ", "_") if name.startswith("[CUDA ") else short_name(name)


def _unnamed(trace: Trace) -> list[tuple[npt.NDArray[np.bool_], str]]:
    """The rows that no string names, and what they are called."""
    kernels = trace.kernels
    found = []
    graphs = kernels.kind == Activity.GRAPH
    for graph in np.unique(kernels.graph_id[graphs]).tolist():
        name = f"CUDA graph {graph}" if graph >= 0 else "CUDA graph"
        found.append((graphs & (kernels.graph_id == graph), name))
    nameless = kernels.name < 0
    copies = nameless & (kernels.kind == Activity.MEMCPY)
    if copies.any() and kernels.copy_kind is not None:
        for kind in np.unique(kernels.copy_kind[copies]).tolist():
            direction = COPY_KINDS[kind] if 0 < kind < len(COPY_KINDS) else ""
            name = f"[CUDA memcpy {direction}]" if direction else "[CUDA memcpy]"
            found.append((copies & (kernels.copy_kind == kind), name))
    found.append((nameless & (kernels.kind == Activity.MEMSET), "[CUDA memset]"))
    return found


def launch_names(trace: Trace) -> Values:
    """The API call that launched each row."""
    used, place = distinct(take(trace.launches.name, trace.kernels.launch), len(trace.strings))
    return Values(*_without_none(place, [trace.strings[i] if i >= 0 else None for i in used]))


def _without_none(place: Any, texts: Sequence[str | None]) -> tuple[Any, list[str]]:
    """Ids into the texts that are there; -1 for None."""
    known = np.array([text is not None for text in texts] or [True])
    number = np.where(known, np.cumsum(known) - 1, -1).astype(np.int32)
    return number[place] if len(place) else place, [text for text in texts if text is not None]


def kinds(trace: Trace) -> Values:
    """kernel, graph, memcpy or memset."""
    return Values(trace.kernels.kind.astype(np.int32), [each.name.lower() for each in Activity])


def damaged(trace: Trace) -> Ints:
    """1 where the duration in the file cannot be true, so that it is not known."""
    flags = trace.kernels.damaged
    if flags is None:
        return Ints(np.broadcast_to(np.int8(0), len(trace.kernels)))
    return Ints(flags.astype(np.int8))


def are_copies(trace: Trace) -> npt.NDArray[np.bool_]:
    """Which rows are memory copies or memsets."""
    return trace.kernels.kind >= Activity.MEMCPY


def copied(trace: Trace) -> Ints:
    """Bytes that a copy or memset wrote."""
    kernels = trace.kernels
    if kernels.copied is None:
        return Ints(np.broadcast_to(np.int64(-1), len(kernels)))
    return Ints(kernels.copied)


def copy_directions(trace: Trace) -> Values:
    """From where to where a copy went: HtoD, DtoH, DtoD, PtoP, ..."""
    kind = trace.kernels.copy_kind
    known = np.full(len(trace.kernels), -1, np.int32) if kind is None else kind
    known = np.where((known > 0) & (known < len(COPY_KINDS)), known - 1, -1).astype(np.int32)
    return Values(known, list(COPY_KINDS[1:]))
