"""Rules on the causes of idle time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.advice.report import at, evidence_of, part_of_step, places_of, shares_of
from fastprof.analysis.idle.causes import CAUSES, Cause
from fastprof.analysis.idle.text import starved_share
from fastprof.analysis.keys import key_of
from fastprof.analysis.recorder import without_recorder
from fastprof.model.arrays import Bools
from fastprof.model.numbers import quantity
from fastprof.profile import program as kinds
from fastprof.profile.gpu_work import launches_graph
from fastprof.profile.program import Program

_LAUNCH_NS: Final = 50_000  # an operator is launched in this time; longer gaps have other host work
_STARVED: Final = 0.1  # of the kernels; with fewer, the queue of the GPU hides the launches


@rule("data-loading", least=0.05)
def data_loading(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for batches."""
    ns, causes = facts.idle.mean("data loading"), ("data loading",)
    if not ns:
        return
    ranges = places_of(facts, causes, "range")
    yield Finding(
        what="The GPU waits for the data loader.",
        where=shares_of(facts, causes, "line", "range"),
        evidence=_host_evidence(facts, {causes[0]: ns}),
        remedy=_loader_remedy(facts.program, ranges),
        confidence="high",
        why="the thread that launches the next work is in the loader during this time",
        idle_ns={"data loading": ns},
        cause=f"The GPU waits {{time}} for the data loader{at(facts, causes, 'line')}.",
        effect=f"{_loader_effect(facts, ranges)} would save {{saving}}.",
    )


def _loader_remedy(program: Program, ranges: list[str]) -> str:
    """The change for a loader with or without worker processes."""
    if program.uses_torch and any("MultiProcessing" in range_ for range_ in ranges):
        return (
            "raise num_workers and prefetch_factor of the DataLoader, or move transforms to the GPU"
        )
    return program.choose(_LOADERS)


_LOADERS: Final = {
    kinds.TORCH: "DataLoader(num_workers=4, pin_memory=True, persistent_workers=True) prefetches "
    "batches; or move transforms to the GPU",
    kinds.SERVING: "prepare the next requests in another process while the GPU computes",
    kinds.JAX: "prefetch batches to the GPU on another thread: grain, or tf.data with prefetch, "
    "and jax.device_put of the next batch",
    kinds.TENSORFLOW: "tf.data: map(..., num_parallel_calls=tf.data.AUTOTUNE) and "
    "prefetch(tf.data.AUTOTUNE)",
    kinds.OTHER: "read the next batch on another thread while the GPU computes",
}


def _loader_effect(facts: Facts, ranges: list[str]) -> str:
    """What saves the time of a loader, with or without worker processes of torch."""
    is_idle = facts.program.uses_torch and not any("MultiProcessing" in name for name in ranges)
    return "Workers" if is_idle else "Batches that are ready in time"


@rule("garbage-collection", least=0.01)
def garbage_collection(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for Python's garbage collector."""
    return _of_one_cause(
        facts,
        "garbage collection",
        what="The GPU waits while Python collects garbage.",
        remedy="gc.freeze() after the first steps, gc.disable() in the loop, and gc.collect() "
        "every few hundred steps; or raise gc.set_threshold",
        why="the thread that launches the next work collects during this time",
        cause="The GPU waits {time} for Python's garbage collector.",
        effect="Collections outside of the steps would save {saving}.",
    )


@rule("gil", least=0.02)
def interpreter_lock(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for Python's global interpreter lock."""
    return _of_one_cause(
        facts,
        "GIL",
        what="The thread that launches work waits for Python's interpreter lock.",
        remedy="move the work of the other Python threads into a process (DataLoader workers, "
        "multiprocessing), or into calls that release the lock",
        why="nsys recorded when the thread waited for the lock",
        cause="The GPU waits {time} while other threads hold Python's interpreter lock.",
        effect="Without them, a step would take {saving} less.",
    )


@rule("off-cpu", least=0.03)
def off_cpu(facts: Facts) -> Iterator[Finding]:
    """The thread that launches work is not on a CPU."""
    return _of_one_cause(
        facts,
        "off CPU",
        what="The operating system does not run the thread that launches work.",
        remedy="give the process enough CPUs: compare its threads (loader workers, "
        "OMP_NUM_THREADS) with the cores, the container's CPU quota and other processes; pin it "
        "with taskset or numactl",
        why="a wait in a call that the trace does not record looks the same",
        cause="The thread that launches work is off the CPU for {time}.",
        effect="If it ran, {saving} would be saved.",
        confidence="medium",
    )


def _of_one_cause(
    facts: Facts,
    name: str,
    *,
    what: str,
    remedy: str,
    why: str,
    cause: str,
    effect: str,
    confidence: str = "high",
) -> Iterator[Finding]:
    """A finding on all idle time of the cause `name`; the other texts are those of `Finding`."""
    ns = facts.idle.mean(name)
    if ns:
        yield Finding(
            what=what,
            remedy=remedy,
            why=why,
            cause=cause,
            effect=effect,
            where=shares_of(facts, (name,), "line", "range"),
            evidence=_host_evidence(facts, {name: ns}),
            confidence=confidence,
            idle_ns={name: ns},
        )


@rule("launch-bound", least=0.03)
def launch_bound(facts: Facts) -> Iterator[Finding]:
    """Kernels are shorter than the host takes to launch them."""
    causes = ("launch-bound", "launch latency")
    by_cause = {cause: facts.idle.mean(cause) for cause in causes}
    starved = starved_share(facts.profile)
    if starved is None or starved < _STARVED:
        return
    longer, repeats = _of_launches(facts), facts.repeated_kernels
    of_gaps = f"{quantity(round(longer), 'ns')} of longer gaps, {_begin(facts)} of each"
    if longer > facts.idle.first("host-bound", _launch_ns(facts)):
        of_gaps += ", all of those in the optimizer"
    if facts.fits_one_graph:
        by_cause[_OTHER] = facts.idle.mean(_OTHER)
    yield Finding(
        what="The GPU finishes kernels faster than the host launches them.",
        where=shares_of(facts, causes, "op", "line", "range"),
        evidence=f"{starved:.1%} of the kernels start within 10 us of their launch; "
        + _host_evidence(facts, {cause: by_cause[cause] for cause in causes})
        + (f"; {of_gaps}" if longer else "")
        + (f"; each step launches the same {repeats} kernels" if repeats else ""),
        remedy=_launch_remedy(facts, repeats),
        confidence="medium",
        why="a graph needs static shapes and no synchronisation inside",
        idle_ns={**by_cause, "host-bound": longer},
        cause="The GPU waits {time} for launches: its kernels take less time than the host takes "
        "to launch them.",
        effect="A CUDA graph would save {saving}.",
    )


def _launch_remedy(facts: Facts, repeats: int) -> str:
    """Graphs, or fewer and longer kernels."""
    program = facts.program
    if facts.replays_graphs and (not program.uses_torch or program.is_compiled):
        return program.choose(_MORE_GRAPHS)
    if not program.uses_torch:
        return program.choose(_GRAPHS)
    if program.is_compiled:
        graph = 'mode="reduce-overhead" of the compilation'
    elif facts.fits_one_graph:
        whole = " (optimizers with capturable=True)" * (program.kind in kinds.TRAINS)
        graph = (
            "shapes repeat and nothing waits for the GPU: torch.cuda.graph of a whole step"
            f"{whole}, torch.cuda.make_graphed_callables, or {_COMPILE}"
        )
    elif repeats:
        graph = "shapes repeat: torch.cuda.make_graphed_callables, or " + _COMPILE
    else:
        graph = _COMPILE
    optimizer = "optimizers with fused=True or foreach=True; " * (program.kind in kinds.TRAINS)
    return f"{graph} replays a CUDA graph; {optimizer}a larger batch"


_COMPILE: Final = 'torch.compile(mode="reduce-overhead")'
_GRAPHS: Final = {
    "vLLM": "enforce_eager=False replays CUDA graphs (cudagraph_mode); more requests or tokens in "
    "a batch (max_num_seqs, max_num_batched_tokens)",
    "SGLang": "CUDA graphs (no --disable-cuda-graph, --cuda-graph-max-bs as large as the batch); "
    "more requests in a batch",
    "TensorRT-LLM": "cuda_graph_config replays CUDA graphs; more requests in a batch "
    "(max_batch_size)",
    "xDiT": 'the compilation\'s mode="reduce-overhead" replays CUDA graphs; more images in a batch',
    kinds.SERVING: "the engine's CUDA graphs, if it has them; more requests in a batch",
    kinds.JAX: "one jax.jit around the whole step, jax.lax.scan over several steps; XLA's command "
    "buffers (--xla_gpu_enable_command_buffer) replay CUDA graphs; a larger batch",
    kinds.TENSORFLOW: "tf.function(jit_compile=True) fuses kernels; steps_per_execution of "
    "Model.compile; a larger batch",
    kinds.MXNET: "hybridize(static_alloc=True, static_shape=True); a larger batch",
    kinds.CUPY: "cupy.fuse, or one cupy.ElementwiseKernel, in place of several operations; "
    "stream.begin_capture() records a CUDA graph; larger arrays",
    kinds.RAPIDS: "larger partitions: fewer and longer kernels",
    kinds.NUMBA: "one kernel in place of several, or a loop inside the kernel; larger grids",
    kinds.CUDA: "short kernels in equal sequences: cudaStreamBeginCapture and cudaGraphLaunch "
    "replay them as one CUDA graph; or one kernel in place of several",
    kinds.OTHER: "fewer and longer kernels: fuse them, replay them as a CUDA graph, or a larger "
    "batch",
}
_MORE_GRAPHS: Final = {
    "vLLM": "graphs replay part of the work: cudagraph_mode=FULL_AND_PIECEWISE, or more requests "
    "in a batch (max_num_seqs)",
    kinds.SERVING: "graphs replay part of the work: more requests in a batch",
    kinds.OTHER: "CUDA graphs replay part of the work: include more of it, or a larger batch",
}


@rule("host-bound", least=0.03)
def host_bound(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for Python code and operators on the host."""
    causes = ("host-bound",)
    whole = facts.idle.mean(*causes)
    ns = whole - _of_launches(facts)
    if ns <= 0:
        return
    code = "host code" if facts.program.kind in (kinds.CUDA, kinds.HIP) else "Python code"
    yield Finding(
        what=f"The GPU waits for {code} between launches.",
        where=shares_of(facts, causes, "line", "layer", "op", "range"),
        evidence=f"{_host_evidence(facts, dict.fromkeys(causes, whole))}; "
        f"{quantity(round(ns), 'ns')} without {_begin(facts)} of each gap, in which the host "
        "launches an operator",
        remedy="move this host work out of the step or to another thread; "
        + _less_host(facts.program),
        confidence="medium",
        why="the recorder itself slows down the host",
        idle_ns={"host-bound": ns},
        cause=f"The GPU waits {{time}} for {code} between "
        f"launches{at(facts, causes, 'line', 'layer', 'op')}.",
        effect="If all of it ran elsewhere, {saving} would be saved.",
    )


def _launch_ns(facts: Facts) -> int:
    """The part of a recorded gap in which an operator is launched: longer than without recorder."""
    return round(_LAUNCH_NS / max(facts.left.get("host-bound", 1.0), _LEAST_LEFT))


def _of_launches(facts: Facts) -> float:
    """The idle time, ns, that is host-bound and gone with fewer launches: the begin of each gap.

    Where one graph can replay the step, also the rest of gaps in the optimizer's own code.
    """
    whole = None
    if facts.fits_one_graph:
        whole = facts.idle.places["range"].fits(lambda name: str(name).startswith(_OPTIMIZER))
    return facts.idle.first("host-bound", _launch_ns(facts), whole)


_OPTIMIZER: Final = "Optimizer.step"  # torch's range


def _begin(facts: Facts) -> str:
    """`50 us`, in recorded time."""
    ns = _launch_ns(facts)
    begin = quantity(_LAUNCH_NS, "ns")
    return begin if ns == _LAUNCH_NS else f"{quantity(ns, 'ns')} ({begin} without the recorder)"


_OTHER: Final = "other thread"
_LEAST_LEFT: Final = 0.1  # of a gap: no recorder is known to slow a host down tenfold


def _host_evidence(facts: Facts, by_cause: Mapping[str, float]) -> str:
    """The idle time of some causes, and what remains without the time of the recorder."""
    recorded = evidence_of(facts, *by_cause)
    less = without_recorder(facts.profile, facts.steps, by_cause)
    return "; ".join(filter(None, [recorded, less]))


def _less_host(program: Program) -> str:
    """The change that leaves less work to the host."""
    if program.uses_torch and program.is_compiled:
        return _FEWER
    return program.choose(_LESS_HOST)


_FEWER: Final = "larger batches: the host launches less often for the same work"
_LESS_HOST: Final = {
    kinds.TORCH: "torch.compile removes the overhead of Python",
    "vLLM": "--async-scheduling prepares the next batch while the GPU computes; CUDA graphs "
    "(enforce_eager=False)",
    "SGLang": "the overlap scheduler (no --disable-overlap-schedule); CUDA graphs",
    kinds.SERVING: "schedule the next batch while the GPU computes; more requests in a batch",
    kinds.JAX: "jax.jit around the whole step",
    kinds.TENSORFLOW: "tf.function around the whole step",
    kinds.MXNET: "hybridize() removes the overhead of Python",
    kinds.CUPY: "larger arrays, fewer operations; cupy.fuse",
    kinds.RAPIDS: "larger partitions, and operations of cudf in place of Python functions",
    kinds.NUMBA: "keep arrays on the GPU (cuda.to_device) and specify signatures, so that a launch "
    "checks less",
    kinds.CUDA: "launch ahead: queue the next kernels before the host works on results",
    kinds.OTHER: _FEWER,
}


@rule("graph-gaps")
def graph_gaps(facts: Facts) -> Iterator[Finding]:
    """The GPU is idle within replays of graphs, or before their first work."""
    queued = _Queued(facts)
    yield from queued.finding(
        queued.is_in_graph,
        "within replays of graphs, with their work queued",
        "nsys profile --cuda-graph-trace=node records all nodes: if the gaps remain, branches of "
        "the graph wait for each other or for host nodes",
        "a recorder that omits nodes of a graph leaves such gaps, too",
    )


@rule("queued-gaps")
def queued_gaps(facts: Facts) -> Iterator[Finding]:
    """The GPU is idle although work is queued."""
    queued = _Queued(facts)
    more = "" if facts.has_steps else "; record several steps, after a warm-up"
    yield from queued.finding(
        ~queued.is_in_graph,
        "with work queued that waits for what the file does not show",
        "fastprof idle --gaps 20 lists the gaps and what waits: an event, another process or GPU, "
        f"or work from before the recording{more}",
        "what the queued work waits for is not recorded",
    )


class _Queued:
    """The gaps before work that waits although it is queued.

    Attributes
    ----------
    is_in_graph : bool [gaps], whether the launch of a graph queued the work
    """

    def __init__(self, facts: Facts) -> None:
        facts.need_calls()
        self._facts = facts
        launched = key_of(facts.profile, "launch")
        in_graph = np.append(launched.fits(launches_graph), False)
        self.is_in_graph: Bools = in_graph[facts.idle.gaps.after]

    def finding(self, chosen: Bools, how: str, remedy: str, why: str) -> Iterator[Finding]:
        """The finding on some of them, if they take enough; it saves no time by itself."""
        facts, idle = self._facts, self._facts.idle
        gaps = idle.is_mainly(_WAITING) & chosen
        ns = idle.by_cause(gaps).get(_WAITING, 0.0)
        if ns < _QUEUED * facts.step_ns:
            return
        length = (idle.gaps.end - idle.gaps.start)[gaps]
        top = [name for name, _ in idle.top("op", gaps, 2)] or [
            name for name, _ in idle.top("range", gaps, 2)
        ]
        count = len(length) / facts.n_steps
        yield Finding(
            what=f"The GPU is idle {how}.",
            where=", ".join(top),
            evidence=f"{quantity(round(ns), 'ns')} idle {facts.per_step} before queued work; "
            f"{count:.4g} gap{'s' * (count != 1)}, the longest "
            f"{quantity(int(length.max()), 'ns')}",
            remedy=remedy,
            confidence="low",
            why=why,
            cause=f"The GPU is idle for {part_of_step(facts, ns)} {how}."
            if ns >= _MOSTLY_QUEUED * facts.step_ns
            else "",
        )


_WAITING: Final = CAUSES[Cause.DEPENDENCY]
_QUEUED: Final = 0.05  # of a step
_MOSTLY_QUEUED: Final = 0.4  # of a step, from which it is the first thing to say
