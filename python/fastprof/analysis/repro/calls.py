"""The calls of a trace that a script can repeat, with what was recorded of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.grouping import Grouping, numbers, texts
from fastprof.analysis.registry import Where
from fastprof.analysis.repro.assumed import with_types
from fastprof.analysis.roofline.ideal import Ideals, ideals_of
from fastprof.analysis.selection import selected
from fastprof.model.arrays import Bools
from fastprof.model.call import Call
from fastprof.model.devices import Device
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.data import ProfileData


class Pass(NamedTuple):
    """What was recorded of the forward or the backward passes of equal calls, per call.

    Parameters
    ----------
    calls : their number
    kernels : kernels of a call
    gpu_ns : GPU time of a call
    flops, bytes : of the model; None if unknown
    ideal_ns : at the peak rates of the GPU; None if unknown
    """

    calls: int
    kernels: float
    gpu_ns: float
    flops: float | None
    bytes: float | None
    ideal_ns: float | None


class Repeatable(NamedTuple):
    """Equal calls: the same operator with the same arguments.

    Parameters
    ----------
    call : the operator and its arguments
    forward, backward : None if there is no GPU work of this pass
    lost_ns : GPU time of all these calls above their ideal time, 0 if that is unknown
    gpu_ns : of all these calls
    kernel : the name of the first kernel of the forward pass, "" if there is none
    compute : the arithmetic of most of its products: tf32, fp32, fp16, bf16; None for others
    result : the sizes of the result, if the surrounding calls determine it
    has_types : the types of tensors are recorded, not assumed by the arithmetic
    """

    call: Call
    forward: Pass | None
    backward: Pass | None
    lost_ns: float
    gpu_ns: float
    kernel: str
    compute: str | None
    result: tuple[int, ...] | None
    has_types: bool


def repeatable_calls(
    profile: ProfileData,
    devices: Mapping[int, Device],
    where: Where | None = None,
    idx: int | None = None,
) -> tuple[list[Repeatable], float]:
    """The distinct calls with recorded arguments, the most lost time first, and the GPU time of
    other work in ns.

    where : see `fastprof.analysis.selection`
    idx : only the calls equal to that which launched this kernel, numbered from 1
    """
    calls = profile.source.calls_of_kernels()
    time = np.maximum(numbers(profile, "sil"), 0).astype(np.float64)
    if calls is None:
        return [], float(time.sum())
    rows = selected(profile, where)
    is_selected = np.ones(len(profile), bool) if rows is None else rows
    other = float(time[is_selected].sum())
    if idx is not None:
        number = calls.call[idx - 1]
        is_selected = is_selected & (calls.call == number) & (number >= 0)
    sums = _Sums(profile, calls, time, ideals_of(profile, devices), is_selected)
    result = []
    for number, named in enumerate(calls.named):
        gpu_ns = float(sums.time[2 * number] + sums.time[2 * number + 1])
        if named.call is None or not gpu_ns:
            continue
        passes = sums.of(2 * number), sums.of(2 * number + 1)
        lost_ns = float(sums.lost[2 * number] + sums.lost[2 * number + 1])
        name, (arithmetic, compute) = sums.kernel(2 * number), sums.arithmetic(number)
        call = with_types(named.call, arithmetic)
        shape = call.result.shape if call.result and named.exact else None
        has_types = call is named.call
        result.append(Repeatable(call, *passes, lost_ns, gpu_ns, name, compute, shape, has_types))
        other -= gpu_ns
    return sorted(result, key=lambda call: (-call.lost_ns, -call.gpu_ns)), other


def _are(profile: ProfileData, name: str, value: str) -> Bools:
    """bool [kernels] Whether a column of texts has this value."""
    column = texts(profile, name)
    rows: Bools = column.ids == (column.values.index(value) if value in column.values else -2)
    return rows


_ARITHMETIC: Final = ("tf32", "fp32", "fp16", "bf16", "fp64")


class _Sums:
    """Sums over the kernels of each call and pass: twice the index of the call, plus 1 in backward.

    Parameters
    ----------
    time : float64 [kernels], ns
    is_selected : bool [kernels]

    Attributes
    ----------
    time, lost : float64 [calls and passes], ns, see `Repeatable`
    """

    def __init__(
        self,
        profile: ProfileData,
        calls: CallsOfKernels,
        time: np.ndarray,
        ideal: Ideals,
        is_selected: np.ndarray,
    ) -> None:
        n = 2 * len(calls.named)
        key = np.where(is_selected & (calls.call >= 0), 2 * calls.call + calls.backward, -1)
        key = key.astype(np.int32)
        groups = Grouping(key, n)
        products = _are(profile, "tc", "0") | _are(profile, "tc", "1")
        self.time, self.lost = groups.sums(time), groups.sums(ideal.lost)
        self._kernels, self._ideal = groups.counts, groups.sums(ideal.ideal)
        self._known = groups.sums(time, ideal.is_counted)
        self._flops, self._bytes = (groups.stats(numbers(profile, x)) for x in ("flops", "bytes"))
        first = np.unique(calls.instance, return_index=True)
        heads = first[1][first[0] >= 0]
        keys, first_of_key = np.unique(key, return_index=True)
        self._first = dict(zip(keys.tolist(), first_of_key.tolist(), strict=True))
        self._names = texts(profile, "name")
        types = {name: _are(profile, "compute_type", name) for name in _ARITHMETIC}
        self._types = {name: groups.sums(time, rows) for name, rows in types.items()}
        self._products = {name: groups.sums(time, rows & products) for name, rows in types.items()}
        self._calls = np.bincount(take(key, heads.astype(np.int32)) + 1, None, n + 1)

    def kernel(self, key: int) -> str:
        """The name of the first kernel of a pass, "" if there is none or the trace lacks it."""
        row = self._first.get(key)
        return "" if row is None else self._names.at(row) or ""

    def arithmetic(self, number: int) -> tuple[str | None, str | None]:
        """The arithmetic of most of a call's time, and of its products; None if there is none."""
        here = slice(2 * number, 2 * number + 2)
        most = []
        for sums in (self._types, self._products):
            times = {name: float(values[here].sum()) for name, values in sums.items()}
            name = max(times, key=lambda name: times[name])
            most.append(name if times[name] else None)
        return most[0], most[1]

    def of(self, key: int) -> Pass | None:
        """The means of a pass; None without kernels."""
        if not self._kernels[key]:
            return None
        n = max(int(self._calls[key + 1]), 1)
        flops, bytes_ = (
            float(stats.sum[key]) / n if stats.count[key] else None
            for stats in (self._flops, self._bytes)
        )
        is_known = self._known[key] > 0 and self._ideal[key] > 0
        ideal = float(self._ideal[key]) / n if is_known else None
        time = float(self.time[key]) / n
        return Pass(n, float(self._kernels[key]) / n, time, flops, bytes_, ideal)
