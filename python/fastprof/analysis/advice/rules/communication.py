"""Rules on communication."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.grouping import Floats64, Grouping
from fastprof.analysis.replay.model import has_size, waits_for_ranks
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
    waits = float(_waits(facts, rows).sum())
    told = f"; {quantity(round(waits), 'ns')} of it wait for other ranks" if waits else ""
    if facts.hidden_ns(rows) <= waits:
        return
    shared = _on_stream_of_compute(facts, rows)
    if shared > 0.5:
        remedy = "these kernels share their stream with compute, which prevents overlap: "
        remedy += facts.program.choose(_STREAMS)
    else:
        remedy = _earlier(facts, rows)
    yield Finding(
        what="The GPU computes nothing during communication.",
        where=", ".join(f"{name} {share:.0%}" for name, share in facts.top("kernel", rows)),
        evidence=f"{quantity(round(exposed), 'ns')} exposed {facts.per_step}; {hidden:.0%} of "
        f"{quantity(round(times['communication_ns']), 'ns')} is hidden behind compute{told}",
        remedy=remedy,
        confidence="medium",
        why="waits for other ranks, which overlap does not remove, are told by the fastest "
        "collective of equal size",
        kernels=rows,
        gpu_ns=max(facts.hidden_ns(rows) - waits, 0.0),
        cause="The GPU computes nothing during communication for {time}.",
        effect="Communication behind compute would save {saving}.",
        overlaps=True,
    )


def _waits(facts: Facts, rows: Int64) -> Floats64:
    """[rows] The part of its own time in which each kernel of communication waits for other ranks,
    ns per step and GPU."""
    waits = waits_for_ranks(facts.profile, rows) * has_size(facts.profile, rows)
    result: Floats64 = np.minimum(facts.of_kernels[rows], waits / max(facts.n_steps, 1))
    return result


@rule("late-ranks", least=0.03)
def late_ranks(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for other ranks to arrive in collectives, which their files explain."""
    rows = facts.kernels(**{"class": "communication"})
    if not len(rows) or np.count_nonzero(facts.lane_ns(rows)) > 1:
        return  # of several ranks in a file, unbalanced-comm tells
    own = _waits(facts, rows)
    waits, late = float(own.sum()), rows[own > 0]
    if waits < _LATE * max(facts.step_ns, 1):
        return
    distributed = facts.profile.about.distributed
    size = None if distributed is None else distributed.world_size
    of_all = f"the files of all {size}" if size and size > 1 else "the files of all ranks"
    time = f"{quantity(round(waits), 'ns')} {facts.a_step if facts.has_steps else 'of the capture'}"
    yield Finding(
        what="The GPU waits for other ranks in collectives.",
        where=", ".join(f"{name} {share:.0%}" for name, share in facts.top("op", late)),
        kernels=late,
        evidence=f"{quantity(round(waits), 'ns')} {facts.per_step}: the time above that of the "
        "fastest collective of equal size",
        remedy="open the files of all ranks: fastprof ranks DIR tells which rank is late, and why; "
        "no change on this rank alone removes these waits",
        confidence="medium",
        why="a collective may also be slow because other traffic shares its links",
        cause=f"The GPU waits {time} for other ranks; fastprof ranks, with {of_all}, tells "
        "which is late, and why.",
    )


_LATE: Final = 0.03  # of a step


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
            "the file contains one rank: fastprof ranks on the files of all ranks compares them"
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
