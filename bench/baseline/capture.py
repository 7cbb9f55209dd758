"""An export -> Capture: every kernel with its launch, the ranges around it and its forward call."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from bench.baseline.engine import Probes, engine_threads, marked
from bench.baseline.frames import NEVER, Frame, Launch, Range, sweep
from bench.baseline.links import link
from bench.baseline.meanings import Reader
from bench.baseline.nodes import Node
from bench.baseline.recomputed import recomputed
from bench.baseline.tables import GRAPH_NODES, PROCESS_SHIFT, Kernel, Tables

MOST_COPIES = 64  # limit of copies of graphs


@dataclass
class Capture:
    """Kernels in order of start, each with its launch and its frame, None where unknown.

    `by_engine` flags kernels that an autograd engine thread launched outside all ranges: their
    frames are those open on the waiting thread. `all_frames` are the frames of all ranges, in their
    order, `root` is the empty chain, `strings` the texts by id.
    """

    kernels: list[Kernel]
    launches: list[Launch | None]
    frames: list[Frame | None]
    by_engine: list[bool]
    all_frames: list[Frame]
    strings: dict[int, str]
    root: Node

    def __len__(self) -> int:
        return len(self.kernels)

    def long_name(self, kernel: Kernel) -> str | None:
        return kernel.name if isinstance(kernel.name, str) else self.strings.get(kernel.name)


def open_export(path: Path) -> Capture:
    """Read an export and find the ranges around the launch of every kernel."""
    tables = Tables(path)
    kernels = tables.kernels()
    launches = find_launches(tables, kernels)
    origins = find_origins(tables, kernels)
    ranges = read_ranges(tables)
    root = Node()
    distinct = {id(each): each for each in (*launches, *origins) if each is not None}
    engine = engine_threads(ranges, tables.thread_names())
    ranges = recomputed(marked(ranges, engine))
    probes = Probes(distinct.values(), {range_[2] for range_ in ranges} - engine, engine)
    all_frames = sweep(ranges, [*distinct.values(), *probes.launches], root)
    link(all_frames)
    by_engine = [launch is not None and probes.settle(launch) for launch in launches]
    frames = [launch and launch.frame for launch in launches]
    for i, origin in enumerate(origins):
        if origin is not None and origin.frame is not None:
            frames[i] = origin.frame
    return Capture(kernels, launches, frames, by_engine, all_frames, tables.strings(), root)


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the garbage collector: millions of rows without cycles would take a third longer.

    Objects created meanwhile are frozen: later collections ignore them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def find_launches(tables: Tables, kernels: list[Kernel]) -> list[Launch | None]:
    """The API call of each kernel: the first of its process with its correlation id."""
    shift = PROCESS_SHIFT if tables.tells_processes else 63
    result: dict[tuple[int | None, int | None], Launch] = {}
    for correlation, thread, start, name in tables.launches():
        key = correlation, thread >> shift
        if key not in result:
            result[key] = Launch(start, thread, name)
    if shift == 63:
        return [result.get((kernel.correlation, 0)) for kernel in kernels]
    return [result.get((kernel.correlation, kernel.process)) for kernel in kernels]


def find_origins(tables: Tables, kernels: list[Kernel]) -> list[Launch | None]:
    """For each node of a CUDA graph the call that created it: the original, not its copies."""
    if all(kernel.graph_node is None for kernel in kernels):
        return []
    nodes: dict[tuple[int, int], tuple[Launch, int | None]] = {}
    for node, thread, start, name, original in tables.select(
        GRAPH_NODES, "graphNodeId", "globalTid", "start", "nameId", "originalGraphNodeId"
    ):
        launch = Launch(start, thread, name)
        nodes.setdefault((thread >> PROCESS_SHIFT, node), (launch, original))

    def first(process: int, node: int) -> Launch | None:
        launch = None
        for _ in range(MOST_COPIES):
            if (process, node) not in nodes:
                break
            launch, original = nodes[process, node]
            if original is None or original == node:
                break
            node = original
        return launch

    return [
        None
        if kernel.graph_node is None or kernel.process is None
        else first(kernel.process, kernel.graph_node)
        for kernel in kernels
    ]


def read_ranges(tables: Tables) -> list[Range]:
    """The parsed ranges, ordered by start, longer first."""
    read = Reader().read
    ranges = [
        (start, NEVER if end is None else end if end > start else start, thread, read(text))
        for start, end, thread, text in tables.ranges()
    ]
    ranges.sort(key=itemgetter(1), reverse=True)
    ranges.sort(key=itemgetter(0))
    return ranges
