"""A program that torch.compile compiled, and traces of it.

`compiled_program` has the records that torch 2.13 wrote (INDUCTOR_PROVENANCE=1, TORCH_TRACE) while
it compiled the program below for the CPU, forward and backward, and again for another batch size.
Only records that fastprof reads are kept, and of generated code the lines of calls. Paths are
changed.

    4  class Block(torch.nn.Module):
    8      def forward(s, x):
    9          h = s.norm(x)
    10         h = torch.nn.functional.gelu(s.fc(h))
    11         return x + h * 2
    12 class Net(torch.nn.Module):
    16     def forward(s, x):
    17         for b in s.blocks: x = b(x)
    18         return x.sum()
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastprof.model.compiled import CompiledGraph
from fastprof.readers.inductor import folder
from support.kineto_files import KinetoFile

FOLDER = Path(__file__).with_name("compiled_program")
MODEL = "/home/me/model.py"
FORWARD, BACKWARD = 2, 3  # of graphs: those of the second compilation, whose nodes are all recorded


def graphs() -> tuple[CompiledGraph, ...]:
    return folder.read(FOLDER).graphs


def write_trace(
    path: Path, calls: Sequence[tuple[CompiledGraph, bool]], times: Sequence[int] = (7, 11, 13, 5)
) -> Path:
    """A trace of calls of compiled graphs, each with whether the profiler names the graph.

    times : of the kernels in turn, us
    """
    trace, at, corr, done = KinetoFile(), 0, 0, 0
    for graph, is_named in calls:
        n = len(graph.kernels)
        if is_named:
            trace.annotation(at, at + 1000 * n + 500, f"## Call CompiledFxGraph {graph.key} ##")
        for i, kernel in enumerate(graph.kernels):
            start, corr = at + 1000 * i + 100, corr + 1
            is_operator = "::" in kernel.name
            trace.op(start, start + 800, kernel.name, dims=[[32, 64], [64, 64]],
                     types=["float", "float"])  # fmt: skip
            trace.launch(start + 100, start + 300, corr)
            done, begin = done + 1000 * times[corr % len(times)], 100_000 + done
            trace.kernel(begin, 100_000 + done, corr, "sgemm" if is_operator else kernel.name)
        at += 1000 * n + 1000
    return trace.write(path)


def write_replays(path: Path, graph: CompiledGraph, n_replays: int) -> Path:
    """A trace of launches of a CUDA graph with the kernels of a compiled graph."""
    trace, done = KinetoFile(), 0
    for replay in range(n_replays):
        start = 10_000 * replay
        trace.launch(start, start + 100, replay + 1, name="cudaGraphLaunch")
        for kernel in graph.kernels:
            done, begin = done + 10_000, 1_000_000 + done
            name = "sgemm" if "::" in kernel.name else kernel.name
            trace.kernel(begin, 1_000_000 + done, replay + 1, name, **{"graph node id": 5})
    return trace.write(path)
