"""Report columns of GPU work: names (also short), kinds, copies, and the launching API call."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof._core._take import distinct, take
from fastprof._system.regex import regex
from fastprof.model.columns import Ints, SharedValues, Values
from fastprof.model.trace import COPY_KINDS, MEMORY_KINDS, Activity, Trace


def names(trace: Trace) -> tuple[SharedValues, SharedValues]:
    """Long and short name of every row.

    A graph is `CUDA graph 3`, a copy `[CUDA memcpy HtoD]`, a memset `[CUDA memset]`; of AMD's
    recordings, `[HIP memcpy HtoD]` and `[HIP memset]`.
    """
    configs, rows = trace.kernels.configs, trace.kernels.config
    copy_kind = configs.kind if configs.copy_kind is None else configs.copy_kind
    graph = np.where(configs.kind == Activity.GRAPH, configs.graph_id, np.int32(-1))
    named_as, first = alike([configs.kind, configs.name, copy_kind, graph])
    long_names: dict[str, int] = {}
    short_names: dict[str, int] = {}
    long_of, short_of = (np.full(len(first), -1, np.int32) for _ in range(2))
    for i, config in enumerate(first.tolist()):
        if (name := _name(trace, config)) is not None:
            long_of[i] = long_names.setdefault(name, len(long_names))
            short_of[i] = short_names.setdefault(_short(name), len(short_names))
    return (
        SharedValues(rows, take(long_of, named_as), list(long_names)),
        SharedValues(rows, take(short_of, named_as), list(short_names)),
    )


_OF_AMD: Final = ("rocpd", "rpd")


def _name(trace: Trace, config: int) -> str | None:
    """The name of work of a configuration, None if the trace lacks it."""
    configs = trace.kernels.configs
    kind, name = int(configs.kind[config]), int(configs.name[config])
    if kind == Activity.GRAPH:
        graph = int(configs.graph_id[config])
        return f"CUDA graph {graph}" if graph >= 0 else "CUDA graph"
    if name >= 0:
        return trace.strings[name]
    maker = "HIP" if trace.about.format in _OF_AMD else "CUDA"
    if kind == Activity.MEMCPY and configs.copy_kind is not None:
        number = int(configs.copy_kind[config])
        known = 0 < number < len(COPY_KINDS)
        return f"[{maker} memcpy {COPY_KINDS[number]}]" if known else f"[{maker} memcpy]"
    return f"[{maker} memset]" if kind == Activity.MEMSET else None


def is_graph(name: str) -> bool:
    """Whether a name is that of a CUDA graph; see `names`."""
    return _GRAPH.fullmatch(name) is not None


_GRAPH = regex(r"CUDA graph(?: \d+)?")


def _short(name: str) -> str:
    return name.replace(" ", "_") if name.startswith("[CUDA ") else short_name(name)


def launch_names(trace: Trace) -> Values:
    """The name of the API call that launched each row."""
    used, place = distinct(trace.kernels.launch, len(trace.strings), trace.launches.name)
    texts = [trace.strings[i] if i >= 0 else None for i in used]
    known = np.array([text is not None for text in texts], bool)
    number = np.where(known, np.cumsum(known) - 1, -1).astype(np.int32)
    return SharedValues(place, number, [text for text in texts if text is not None])


def in_graphs(trace: Trace) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """[rows] Whether a graph launch replayed the row; whether the row is an unexpanded graph."""
    is_whole = take(trace.kernels.configs.kind, trace.kernels.config) == Activity.GRAPH
    is_replayed = launch_names(trace).fits(launches_graph)
    return is_replayed & ~is_whole, is_whole


def has_graphs(trace: Trace) -> bool:
    """Whether `in_graphs` may be true of any row."""
    is_launched = any(launches_graph(name) for name in trace.strings)
    return is_launched or bool((trace.kernels.configs.kind == Activity.GRAPH).any())


def launches_graph(name: str | None) -> bool:
    """Whether an API call of this name replays a graph."""
    return name is not None and _GRAPH_LAUNCH.match(name) is not None


_GRAPH_LAUNCH = regex(r"(?:cuda|cu|hip)GraphLaunch")


def kinds(trace: Trace) -> SharedValues:
    """kernel, graph, memcpy or memset."""
    kernels = trace.kernels
    return SharedValues(
        kernels.config, kernels.configs.kind, [activity.name.lower() for activity in Activity]
    )


def damaged(trace: Trace) -> Ints:
    """1 if the duration in the file is impossible; `sil` is then unknown."""
    flags = trace.kernels.damaged
    if flags is None:
        return Ints(np.broadcast_to(np.int8(0), len(trace.kernels)))
    return Ints(flags.astype(np.int8))


def are_copies(trace: Trace) -> npt.NDArray[np.bool_]:
    """Which rows are memory copies or memsets."""
    return take(trace.kernels.configs.kind, trace.kernels.config) >= Activity.MEMCPY


def copied(trace: Trace) -> Ints:
    """Bytes written by copies and memsets."""
    kernels = trace.kernels
    if kernels.copied is None:
        return Ints(np.broadcast_to(np.int64(-1), len(kernels)))
    return Ints(kernels.copied)


def copy_directions(trace: Trace) -> SharedValues:
    """The direction of each copy: HtoD, DtoH, DtoD, PtoP, ..."""
    configs = trace.kernels.configs
    kind = np.full(len(configs), -1, np.int32) if configs.copy_kind is None else configs.copy_kind
    known = np.where((kind > 0) & (kind < len(COPY_KINDS)), kind - 1, -1).astype(np.int32)
    return SharedValues(trace.kernels.config, known, list(COPY_KINDS[1:]))


def copy_memory(trace: Trace) -> SharedValues:
    """The memory of each copy and memset: `pageable -> device`, `device`, ..."""
    configs = trace.kernels.configs
    if configs.source is None or configs.target is None:
        return SharedValues(trace.kernels.config, np.full(len(configs), -1, np.int32), [])
    ids, first = alike([configs.source, configs.target])
    kinds = [*MEMORY_KINDS, ""]
    pairs = [(kinds[configs.source[i]], kinds[configs.target[i]]) for i in first.tolist()]
    names = [" -> ".join(filter(None, pair)) if pair[1] else None for pair in pairs]
    values = Values(ids, names).mapped(lambda name: name)
    return SharedValues(trace.kernels.config, values.ids, values.values)


# Prefixes that do not distinguish kernels. `<unnamed>` is Nsight Systems' spelling of the anonymous
# namespace; both spellings must go before the name is cut at its first `<` or `(`.
_LEFT_OUT = (
    "(anonymous namespace)::",
    "<unnamed>::",
    "void ",
    "at::",
    "cuda::",
    "native::",
)


def short_name(name: str) -> str:
    """The name up to `<` or `(`, without `void ` and common namespaces; spaces become `_`."""
    head = name
    for word in _LEFT_OUT[:2]:
        head = head.replace(word, "")
    head = head.split("<", 1)[0].split("(", 1)[0]
    for word in _LEFT_OUT[2:]:
        head = head.replace(word, "")
    return (head.strip() or name).replace(" ", "_")
