"""Rules on communication."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.grouping import Grouping
from fastprof.model.arrays import Bools, Int64
from fastprof.model.numbers import quantity
from fastprof.profile import program as kinds

_UNBALANCED: Final = 1.3  # the longest communication of a GPU by the shortest


@rule("exposed-comm", least=0.03)
def exposed_communication(facts: Facts) -> Iterator[Finding]:
    """Communication during which the GPU computes nothing."""
    times, rows = facts.times, facts.kernels(**{"class": "communication"})
    exposed = times["exposed_communication_ns"]
    if not exposed:
        return
    hidden = times["hidden_communication_ns"] / max(times["communication_ns"], 1)
    shared = _on_stream_of_compute(facts, rows)
    if shared > 0.5:
        remedy = "these kernels share their stream with compute, which prevents overlap: "
        remedy += facts.program.choose(_STREAMS)
    else:
        remedy = f"{_earlier(facts, rows)}; fastprof batch shows waits for a late rank"
    yield Finding(
        what="The GPU computes nothing during communication.",
        where=", ".join(f"{name} {share:.0%}" for name, share in facts.top("kernel", rows)),
        evidence=f"{quantity(round(exposed), 'ns')} exposed {facts.per_step}; {hidden:.0%} of "
        f"{quantity(round(times['communication_ns']), 'ns')} is hidden behind compute",
        remedy=remedy,
        confidence="medium",
        why="the time includes waits for other ranks, which overlap does not remove",
        kernels=rows,
        gpu_ns=facts.hidden_ns(rows),
        cause="The GPU computes nothing during communication for {time}.",
        effect="Communication behind compute would save {saving}.",
        overlaps=True,
    )


_STREAMS: Final = {
    kinds.TORCH: "use a process group of its own, or async_op=True",
    kinds.SERVING: "split a batch in two that overlap, if the engine can (two-batch overlap); "
    "fewer GPUs for tensor parallelism",
    kinds.OTHER: "launch them on a stream of their own",
}


def _earlier(facts: Facts, rows: Int64) -> str:
    """The change that starts communication earlier: for what is communicated, and by whom."""
    program = facts.program
    if program.kind not in kinds.USES_TORCH or program.kind == kinds.INFERENCE:
        return program.choose(_EARLIER)
    operators = facts.top("op", rows, most=1) or facts.top("kernel", rows, most=1)
    kind = re.sub("[^a-z]", "", "".join(name for name, _ in operators).lower())
    if "alltoall" in kind or "sendrecv" in kind:
        return _EXCHANGES
    if "allreduce" in kind or "broadcast" in kind:
        return _REDUCES if program.kind in kinds.TRAINS else _EARLIER[kinds.INFERENCE]
    names = facts.profile.paths.folded
    is_sharded = names.fits(lambda text: bool(_FSDP.search(text or ""))).any()
    return _SHARDS if is_sharded or program.kind == kinds.TRAINING else _EARLIER[kinds.INFERENCE]


_FSDP: Final = re.compile(r"FSDP::|FullySharded|_fsdp/")


_EXCHANGES: Final = (
    "start the exchange earlier (async_op=True) and compute meanwhile what does not need it, such "
    "as a part of the batch"
)
_REDUCES: Final = (
    "start communication earlier, in smaller parts: DistributedDataParallel(bucket_cap_mb=...)"
)
_SHARDS: Final = (
    "start communication earlier: FSDP with backward_prefetch=BACKWARD_PRE and "
    "forward_prefetch=True"
)
_EARLIER: Final = {
    kinds.INFERENCE: "start communication before the work that does not need it (async_op=True); "
    "fewer GPUs for tensor parallelism",
    kinds.SERVING: "fused or custom all-reduce of the engine; fewer GPUs for tensor parallelism, "
    "more for data parallelism",
    kinds.JAX: "XLA's latency hiding scheduler: "
    "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true",
    kinds.OTHER: "start communication earlier, in parts, while other work computes",
}


def _on_stream_of_compute(facts: Facts, rows: Int64) -> float:
    """The share of the time of communication on streams that mostly compute."""

    def computes(streams: Grouping) -> Bools:
        of_comm = np.bincount(streams.ids[rows], facts.of_kernels[rows], streams.n)
        of_all = np.bincount(streams.ids, facts.of_kernels, streams.n)
        return np.asarray(of_comm < of_all / 2, bool)

    return facts.share_on_streams(rows, computes)


@rule("unbalanced-comm", needs=("times",))
def unbalanced_communication(facts: Facts) -> Iterator[Finding]:
    """One GPU waits for another in communication."""
    rows = facts.kernels(**{"class": "communication"})
    if not len(rows):
        return
    lane_ns = facts.lane_ns(rows)
    lanes = np.flatnonzero(lane_ns)
    if len(lanes) < 2:
        raise CannotJudge(
            "the file contains one rank: fastprof batch on the files of all ranks compares them"
        )
    devices = facts.windows.lanes.device[lanes]
    ns = dict(zip(devices.tolist(), lane_ns[lanes].tolist(), strict=True))
    late, early = min(ns, key=ns.__getitem__), max(ns, key=ns.__getitem__)
    if ns[early] < _UNBALANCED * ns[late] or ns[early] - ns[late] < 0.01 * facts.step_ns:
        return
    yield Finding(
        what=f"GPU {early} waits for GPU {late} in communication.",
        where=f"GPU {late}",
        evidence=", ".join(
            f"GPU {device}: {quantity(round(each), 'ns')} {facts.per_step}"
            for device, each in ns.items()
        ),
        remedy=f"find what GPU {late} does longer (fastprof steps, --where device={late}): uneven "
        "batches or layers, host work of one rank",
        confidence="medium",
        why="a collective ends at about the same time on all ranks: the last rank waits least",
    )
