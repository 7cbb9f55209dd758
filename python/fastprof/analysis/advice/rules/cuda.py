"""Rules on kernels and streams that the user writes: occupancy, the default stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.gpu_work import BusyTime, GpuWork
from fastprof.analysis.grouping import Floats64, numbers
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.model.arrays import Bools, Int64, unique
from fastprof.model.numbers import quantity
from fastprof.ops.kernels import KINDS
from fastprof.profile.data import ProfileData
from fastprof.profile.program import CUDA, CUPY, HIP, NUMBA, OTHER, WRITES_KERNELS

_LOW: Final = 0.25  # of the warps of a multiprocessor
_LONG: Final = 10_000  # ns; shorter kernels are limited by their launch
_SHARE: Final = 0.1  # of the GPU time
_OVERLAP: Final = 0.02  # of the shorter of two streams


class _Limits(NamedTuple):
    """What a multiprocessor holds at once: warps, blocks, bytes of shared memory."""

    warps: int
    blocks: int
    shared: int


# CUDA C++ Programming Guide, compute capabilities.
_KIB: Final = 1024
_LIMITS: Final = {
    "6.0": _Limits(64, 32, 64 * _KIB),
    "6.1": _Limits(64, 32, 96 * _KIB),
    "7.0": _Limits(64, 32, 96 * _KIB),
    "7.5": _Limits(32, 16, 64 * _KIB),
    "8.0": _Limits(64, 32, 164 * _KIB),
    "8.6": _Limits(48, 16, 100 * _KIB),
    "8.9": _Limits(48, 24, 100 * _KIB),
    "9.0": _Limits(64, 32, 228 * _KIB),
    "10.0": _Limits(64, 32, 228 * _KIB),
    "12.0": _Limits(48, 32, 100 * _KIB),
}
_REGISTERS: Final = 65_536  # of a multiprocessor
_UNIT: Final = 256  # registers are given to a warp in these portions
_WARP: Final = 32
# Kinds of kernels that libraries tune for few warps, and what is no kernel.
_OWN: Final = tuple(KINDS - PRODUCTS - {"communication", "memcpy", "memset"})


@rule("low-occupancy", least=0.0, programs=WRITES_KERNELS - {HIP})
def low_occupancy(facts: Facts) -> Iterator[Finding]:
    """Kernels of which few warps fit into a multiprocessor."""
    limits = {
        number: _LIMITS.get(device.capability or "") for number, device in facts.devices.items()
    }
    if not any(limits.values()):
        raise CannotJudge("the compute capability of the GPU is unknown: --gpu NAME names it")
    total = max(facts.own_ns(np.arange(len(facts.profile))), 1.0)
    kernels = facts.kernels(kind=_OWN)
    device = numbers(facts.profile, "device")[kernels]
    for number, limit in limits.items():
        if limit is None:
            continue
        occupancy = _occupancy(facts.profile, kernels[device == number], limit)
        low = occupancy.rows[(occupancy.share > 0) & (occupancy.share <= _LOW)]
        for name, share in facts.top("kernel", low, most=1):
            own = low[key_of(facts.profile, "kernel").take(low).fits(name.__eq__)]
            ns = facts.own_ns(own)
            if ns >= _SHARE * total and ns >= _LONG * facts.count(own):
                place = int(np.flatnonzero(occupancy.rows == own[0])[0])
                yield Finding(
                    what=f"At most {occupancy.share[place]:.0%} of the warps of a multiprocessor "
                    f"run at once in {name}.",
                    evidence=f"{quantity(round(ns), 'ns')} {facts.per_step}, {ns / total:.0%} of "
                    f"the GPU time, {share:.0%} of that of all such kernels; "
                    + occupancy.reason(facts.profile, place),
                    remedy=_REMEDIES[occupancy.limit[place]],
                    confidence="low",
                    why="few warps can suffice, if each has much work in flight",
                )


_REMEDIES: Final = (
    "__launch_bounds__ or -maxrregcount, smaller types, or less work for a thread",
    "less shared memory for a block, or smaller blocks",
    "blocks of 128 to 256 threads",
)


class _Occupancy(NamedTuple):
    """How many warps of kernels fit into a multiprocessor.

    Parameters
    ----------
    rows : int64 [n], the kernels
    share : float64 [n], of the warps that a multiprocessor can run; 0 if unknown
    limit : int64 [n], what prevents more: registers, shared memory, the size of blocks
    """

    rows: Int64
    share: Floats64
    limit: Int64

    def reason(self, profile: ProfileData, place: int) -> str:
        """What prevents more warps, in words."""
        row = int(self.rows[place])
        threads = int(numbers(profile, "block")[row].astype(np.int64).prod())
        if self.limit[place] == 0:
            return f"{numbers(profile, 'registers')[row]} registers in each of {threads} threads"
        if self.limit[place] == 1:
            return (
                f"{quantity(int(numbers(profile, 'shared_memory')[row]), 'bytes')} of shared "
                "memory for a block"
            )
        return f"blocks of {threads} threads"


def _occupancy(profile: ProfileData, rows: Int64, limit: _Limits) -> _Occupancy:
    threads = np.maximum(numbers(profile, "block")[rows].astype(np.int64).prod(axis=1), 0)
    registers, shared = (
        np.maximum(numbers(profile, name)[rows].astype(np.int64), 0)
        for name in ("registers", "shared_memory")
    )
    warps = np.maximum(-(-threads // _WARP), 1)
    of_warp = np.maximum(-(-registers * _WARP // _UNIT) * _UNIT, 1)
    blocks = np.stack(
        [
            _REGISTERS // of_warp // warps,
            limit.shared // np.maximum(shared, 1),
            np.minimum(limit.blocks, limit.warps // warps),
        ]
    )
    fitting = np.minimum(blocks.min(axis=0) * warps / limit.warps, 1.0)
    return _Occupancy(rows, np.where(threads > 0, fitting, 0.0), blocks.argmin(axis=0))


@rule("default-stream", least=0.0, programs=WRITES_KERNELS, needs=("times",))
def default_stream(facts: Facts) -> Iterator[Finding]:
    """Work of the default stream, which runs alone, among work of other streams."""
    streams = numbers(facts.profile, "stream")
    for lane in facts.windows.lanes:
        rows = lane.work.rows
        stream = streams[rows]
        if len(unique(stream)) < 2:
            continue
        is_default = stream == stream.min()  # a context creates it first
        default, others, both = (
            _busy(lane.work, each) for each in (is_default, ~is_default, np.ones(len(rows), bool))
        )
        shorter = min(default, others)
        if shorter < _SHARE * both or default + others - both > _OVERLAP * shorter:
            continue
        yield Finding(
            what="Work on the default stream and on other streams never overlaps.",
            where=f"stream {stream.min()}, and {len(unique(stream)) - 1} others",
            evidence=f"{quantity(default, 'ns')} on stream {stream.min()}, "
            f"{quantity(others, 'ns')} on others, in the capture",
            remedy=facts.program.choose(_STREAMS),
            confidence="low",
            why="the work may depend on each other; which streams block is not recorded",
        )


_STREAMS: Final = {
    CUPY: "cupy.cuda.Stream(non_blocking=True) for all work, none on Stream.null",
    NUMBA: "cuda.stream() for all work, or the environment variable "
    "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM=1",
    CUDA: "streams of cudaStreamCreateWithFlags(..., cudaStreamNonBlocking) for all work, or nvcc "
    "--default-stream per-thread",
    OTHER: "streams that do not wait for the default stream (non-blocking), for all work",
}


def _busy(work: GpuWork, rows: Bools) -> int:
    """ns during which some work runs."""
    busy = BusyTime(work.start[rows], work.end[rows])
    return int(busy.until(work.end.max(keepdims=True))[0])
