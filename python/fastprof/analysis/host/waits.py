"""Calls and copies that wait for the GPU though their name says nothing; what first use takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take, where
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.analysis.gpu_work import BusyTime
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.host.events import OpenRanges, ThreadEvents, grouped, in_order
from fastprof.model.arrays import Bools, Int32, Int64, among, difference, union, unique
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import ALLOC, COPY_CALL, CREATE, LAUNCH, LOAD, OTHER, SYNC
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.instances import ApiCalls

FREES: Final = ("Free", "Unregister", "Unmap", "Release", "TrimTo")  # in names of calls that free

_LONG_NS: Final = 20_000  # shorter calls may end with work by accident
_RETURN_NS: Final = 20_000  # a call that waits returns sooner after the work
_EARLY_NS: Final = 1_000  # of the work's end, by the clocks
_FULL: Final = 256  # pieces of work in a queue that may have no place for more


class _Calls(NamedTuple):
    """Long calls of a process.

    Parameters
    ----------
    row : int64 [calls], of `profile.api`
    start, end : int64 [calls], ns
    queues, frees : bool [calls], whether they launch or copy; whether they free memory
    """

    row: Int64
    start: Int64
    end: Int64
    queues: Bools
    frees: Bools


def implied_waits(profile: ProfileData) -> tuple[Int64, Int64]:
    """Calls that wait, rows of `profile.api` in order, and when each wait ends, ns.

    - Calls that end as the work that they queued does, on a GPU that works meanwhile.
    - Calls that queue nothing, and end as all work launched before does. Those that free memory
      may go on: their wait ends with that work.
    - Launches and copies into a full queue, which end as work does.
    """
    api = profile.api
    end = np.where(api.end == NEVER, api.start, api.end)
    long = np.flatnonzero(end - api.start >= _LONG_NS)
    long = long[api.call_class.take(long).fits(lambda each: each != SYNC)]
    until = np.full(len(long), np.int64(-1))
    if len(long) and (api.of_kernel >= 0).any():
        names, classes = api.name.take(long), api.call_class.take(long)
        calls = _Calls(
            long, api.start[long], end[long],
            classes.fits(lambda each: each in (LAUNCH, COPY_CALL)),
            names.fits(lambda name: any(text in name for text in FREES)),
        )  # fmt: skip
        pid = take(api.threads.pid, api.thread[long])
        for of_process, queue in _queues(profile, api):
            rows = np.flatnonzero(pid == of_process)
            own = _Calls._make(call[rows] for call in calls)
            until[rows] = np.maximum(until[rows], queue.waits(own))
    waits = until >= 0
    return long[waits], until[waits]


def waits_for_copies(profile: ProfileData, waits: Int64) -> Int64:
    """Those of some calls that wait for the copy that they queued: it ends before they do."""
    api = profile.api
    copies = waits[api.name.take(waits).fits(lambda name: "Memcpy" in name)]
    end = np.full(len(api) + 1, NEVER)
    end[api.of_kernel] = numbers(profile, "start") + np.maximum(numbers(profile, "sil"), 0)
    return copies[end[copies] <= api.end[copies] + _EARLY_NS]


def _queues(profile: ProfileData, api: ApiCalls) -> Iterator[tuple[int, _Queue]]:
    """The work of each process on each GPU."""
    launched = np.flatnonzero(api.of_kernel >= 0)
    thread = api.thread[api.of_kernel[launched]]
    device = np.ascontiguousarray(numbers(profile, "device")[launched], np.int64)
    pid = np.ascontiguousarray(take(api.threads.pid, thread), np.int64)
    ids, first = alike([pid, device])
    for queue, row in enumerate(first.tolist()):
        yield int(pid[row]), _Queue(profile, api, launched[ids == queue])


class _Queue:
    """The launched work of a process on a GPU."""

    def __init__(self, profile: ProfileData, api: ApiCalls, work: Int64) -> None:
        """work : kernel rows in order of start"""
        start = numbers(profile, "start")[work]
        end = start + np.maximum(numbers(profile, "sil")[work], 0)
        call = api.of_kernel[work]
        order = np.argsort(call, kind="stable")  # calls are in order of start
        self._call, self._launch = call[order], api.start[call[order]]
        self._drained = np.maximum.accumulate(end[order])
        last = np.append(self._call[1:] != self._call[:-1], True)
        self._calls = self._call[last]
        groups = np.flatnonzero(np.append(True, last[:-1]))
        self._own_end = np.maximum.reduceat(end[order], groups)
        self._start, self._end = start, np.sort(end)
        self._busy = BusyTime(start, end)

    def waits(self, calls: _Calls) -> Int64:
        """When the wait of each call ends, ns, -1 for none."""
        works = self._busy.until(calls.end) - self._busy.until(calls.start)
        is_busy = 2 * works >= calls.end - calls.start
        before = np.searchsorted(self._launch, calls.start, "left")
        drained = np.where(before > 0, self._drained[before - 1], -1)
        place = np.minimum(np.searchsorted(self._calls, calls.row), len(self._calls) - 1)
        is_own = self._calls[place] == calls.row
        own = np.where(is_own, self._own_end[place], -1)
        # The queue has no place until work ends.
        pending = before - np.searchsorted(self._start, calls.start, "right")
        last = np.searchsorted(self._end, calls.end + _EARLY_NS, "right")
        ended = np.where(last > 0, self._end[last - 1], -1)
        is_full = is_own & calls.queues & (pending >= _FULL) & _ends_with(calls, ended)
        waits = (is_own & is_busy & _ends_with(calls, own)) | is_full
        waits |= ~is_own & ~calls.queues & is_busy & _ends_with(calls, drained)
        frees = ~waits & calls.frees & (drained > calls.start) & (drained < calls.end)
        return np.where(waits, calls.end, np.where(frees, drained, -1))


def _ends_with(calls: _Calls, work: Int64) -> Bools:
    """Whether each call ends as some work does, which ends after the call begins."""
    after = calls.end - work
    ends: Bools = (work > calls.start) & (after >= -_EARLY_NS) & (after <= _RETURN_NS)
    return ends


# The longest time between a copy and the call that waits for it: torch makes them back to back.
_PAIR_NS: Final = 20_000
# The shortest asynchronous copy that is said to block if the copy begins before the call returns.
_BLOCKS_NS: Final = 10_000


def blocked_ns(profile: ProfileData, rows: Int64) -> Int64:
    """The time that the host waits in the call of each copy, ns; 0 if it does not wait.

    -1 if the call is not recorded.

    rows : copies, kernel rows
    """
    api = profile.api
    calls, until = kept(profile, blocking_copies)
    known = api.end[until] != NEVER
    calls, until = calls[known], until[known]
    call = api.of_kernel[rows]
    result: Int64 = np.where(call >= 0, np.int64(0), np.int64(-1))
    if len(calls):
        last = np.searchsorted(calls, call, "right") - 1
        waits = (last >= 0) & (calls[last] == call)
        result[waits] = (api.end[until] - api.start[calls])[last[waits]]
    return result


def blocking_copies(profile: ProfileData) -> tuple[Int64, Int64]:
    """Copies that wait: rows of `profile.api`, and the call at which each ends.

    Copies without `Async`; asynchronous ones that a StreamSynchronize follows at once, with it; and
    those that return after the GPU has begun to copy, as from pageable memory.
    """
    api = profile.api
    alone, copies, waits = api.name.where_each(
        *map(_matches, (_SYNC_COPY, _ASYNC_COPY, _STREAM_WAIT))
    )
    first, second = _copies_and_waits(api, copies, waits)
    row = difference(_long_copies(profile), first)
    rows, until = np.concatenate([alone, first, row]), np.concatenate([alone, second, row])
    order = np.argsort(rows, kind="stable")
    return rows[order], until[order]


def _copies_and_waits(api: ApiCalls, copies: Int64, waits: Int64) -> tuple[Int64, Int64]:
    """Asynchronous copies, and the StreamSynchronize that follows each at once."""
    rows = union(copies, waits)
    rows = rows[np.argsort(api.thread[rows], kind="stable")]
    is_copy = among(rows, copies)
    first, second = rows[:-1], rows[1:]
    after = api.start[second] - np.minimum(api.end[first], api.start[second])
    follows = is_copy[:-1] & ~is_copy[1:] & (api.thread[first] == api.thread[second])
    follows &= after <= _PAIR_NS
    return first[follows], second[follows]


def _long_copies(profile: ProfileData) -> Int64:
    """Calls of asynchronous copies from or to the host that return after the GPU has begun them."""
    api = profile.api
    copies = texts(profile, "copy_direction").where(lambda each: "H" in each)
    copies = copies[api.of_kernel[copies] >= 0]
    call: Int32 = api.of_kernel[copies]
    end = take(api.end, call)
    blocks = (end != NEVER) & (end > numbers(profile, "start")[copies])
    blocks &= end - api.start[call] >= _BLOCKS_NS
    blocks &= api.name.take(call).fits(_matches(_ASYNC_COPY))
    result: Int64 = call[blocks].astype(np.int64)
    return result


_SYNC_COPY: Final = regex(r"(?:cuda|cu|hip)Memcpy(?!\w*Async)")
_ASYNC_COPY: Final = regex(r"(?:cuda|cu|hip)Memcpy\w*Async")
_STREAM_WAIT: Final = regex(r"(?:cuda|cu|hip)StreamSynchronize")


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Whether a name begins with a pattern."""
    return lambda name: bool(pattern.match(name))


_LOADS_NS: Final = 100_000  # the first launch of a kernel takes as long if it loads its code
_CREATES_NS: Final = 20_000  # shorter calls that create do nothing new
_STARTS_NS: Final = 20_000_000  # the first call of a process takes as long if it creates a context
_COMPILES_NS: Final = 1_000_000  # host time before code is loaded is longer if it compiles the code

_COMPILES: Final = regex(r"(?:cu|hip)Link|(?:nv|hip)rtc")
_LOADS_MODULE: Final = regex(r"(?:cu|hip)ModuleLoadData")
_LOOKS_UP: Final = regex(
    r"(?:cuda|cu|hip)(?:Func|Occupancy|Kernel|GetSymbol|GetFunc|ModuleGet|LibraryGet)"
)
_COMPILATION: Final = regex(
    r".* \(dynamo_timed\)"  # torch.compile
    r"|(?:entire_frame_compile|backend_compile|inductor_compile|fx_codegen_and_compile)\b.*"
    r"|.*\b(?:compile_fx|inductor_codegen|async_compile)\b.*"
    r"|\W*XlaCompile.*|.*(?:nv|hip)rtc\w*Compile.*"
    # Python frames
    r"|torch/_dynamo/convert_frame\.py\(\d+\): _?compile\w*"
    r"|torch/utils/cpp_extension\.py\(\d+\): (?:load\w*|_jit_compile)"
    r"|(?:.*/)?(?:triton|numba|cupy)/.*\.py\(\d+\): (?:_?(?:do_)?compile\w*)"
)
_COMPILING: Final = ("ompil", "codegen", "dynamo", "cpp_extension")  # one is in all that fit
_NAMED_SO: Final = regex(r"\W*(?:jit[ _-]?)?compil(?:e|ing|ation)\W*", re.I)
_LIBRARY_HANDLE: Final = regex(
    r"(?:cublas|cudnn|cusolver|cusparse|cufft|curand|nccl|hipblas|rocblas|miopen|rccl)\w*"
    r"(?:Create|Init)\w*"
)
_NUMBA: Final = "cudapy"  # in the names of its kernels


def compiling_calls(profile: ProfileData) -> Int64:
    """Calls that link or compile code, rows of `profile.api`."""
    return profile.api.name.where(lambda name: bool(_COMPILES.match(name)))


def compilation(profile: ProfileData) -> ThreadEvents:
    """When threads compile code; the rows are calls, -1 for ranges and the time before calls.

    - Ranges and Python functions of compilers: torch.compile, Triton, Numba, NVRTC, XLA.
    - Calls that link or compile.
    - The host's time before such a call, before a module is loaded, and before the first launch of
      a kernel of Numba: since the thread last launched, copied or waited, in the innermost range.
    """
    ranges, api = profile.ranges, profile.api
    names = [meaning.name for meaning in ranges.meanings]
    possible = {i for word in _COMPILING for i, name in enumerate(names) if word in name}
    possible |= {i for i, meaning in enumerate(ranges.meanings) if meaning.kind == Kind.USER}
    fits = np.zeros(len(names), bool)
    fits[[i for i in possible if _compiles(ranges.meanings[i])]] = True
    own = where(fits, ranges.label)
    none = np.full(len(own), -1)
    of_ranges = ThreadEvents(ranges.thread[own], ranges.start[own], ranges.end[own], none)
    calls = compiling_calls(profile)
    of_calls = ThreadEvents(api.thread[calls], api.start[calls], api.end[calls], calls)
    return in_order([of_ranges, of_calls, _before(profile, calls)])


def _compiles(meaning: Meaning) -> bool:
    is_user = meaning.kind == Kind.USER
    name = meaning.name
    return bool(_COMPILATION.fullmatch(name) or (is_user and _NAMED_SO.fullmatch(name)))


def _before(profile: ProfileData, compiling: Int64) -> ThreadEvents:
    """The host's time before calls that need compiled code."""
    api = profile.api
    modules = api.name.where(lambda name: bool(_LOADS_MODULE.match(name)))
    names = texts(profile, "name").where(lambda name: _NUMBA in name)
    numba = _first_launches(profile, names)
    calls = unique(np.concatenate([compiling, modules, numba]))
    if not len(calls):
        return ThreadEvents(api.thread[:0], api.start[:0], api.end[:0], calls)
    is_inner = np.zeros(len(calls), bool)  # the runtime loads its own modules
    begin = np.full(len(calls), NEVER)
    working = np.zeros(len(api), bool)
    classes = api.call_class.where(lambda each: each in (LAUNCH, COPY_CALL, SYNC))
    working[classes] = True
    rows = np.flatnonzero(working)
    own = grouped(api.thread[rows], rows, api.end[rows])
    last = own.first(api.thread[calls], calls) - 1
    known = last >= own.slices(api.thread[calls])[0]
    end = api.end[own.start[last[known]]]
    is_inner[known] = end > api.start[calls[known]]
    begin[known] = end
    inner = OpenRanges(profile).innermost(api.thread[calls], api.start[calls])
    begin = np.where(
        inner >= 0, np.maximum(take(profile.ranges.start, inner), _known(begin)), begin
    )
    rows = np.flatnonzero(~is_inner & (begin != NEVER))
    rows = rows[api.start[calls[rows]] - begin[rows] >= _COMPILES_NS]
    call = calls[rows]
    return ThreadEvents(api.thread[call], begin[rows], api.start[call], np.full(len(rows), -1))


def _known(begin: Int64) -> Int64:
    return np.where(begin == NEVER, np.int64(0), begin)


def creation(profile: ProfileData) -> tuple[Int64, Int64]:
    """What creates streams, events, contexts or handles: rows of `profile.api` and of ranges.

    Calls and ranges of libraries; and the first call of a process, if it is long.
    """
    ranges, api = profile.ranges, profile.api
    creates = _long(api, api.call_class.where(lambda each: each == CREATE), _CREATES_NS)
    first = _long(api, _first_calls(api), _STARTS_NS)
    first = first[api.call_class.take(first).fits(lambda each: each in (ALLOC, OTHER))]
    fits = np.array(
        [bool(_LIBRARY_HANDLE.match(meaning.name)) for meaning in ranges.meanings], bool
    )
    return union(creates, first), where(fits, ranges.label)


def loading(profile: ProfileData) -> Int64:
    """Calls that load code, rows of `profile.api`.

    Those of modules and graphs; launches of kernels that their GPU runs for the first time in the
    capture, and calls that look up functions, if they are long.
    """
    api = profile.api
    loads, launches = api.call_class.where_each(
        lambda each: each == LOAD, lambda each: each == LAUNCH
    )
    looks_up = api.name.where(lambda name: bool(_LOOKS_UP.match(name)))
    long = np.zeros(len(api) + 1, bool)
    long[_long(api, launches, _LOADS_NS)] = True
    first = _first_launches(profile, np.flatnonzero(long[api.of_kernel]))
    return unique(np.concatenate([loads, first, _long(api, looks_up, _LOADS_NS)]))


def _first_calls(api: ApiCalls) -> Int64:
    """The first call of each process."""
    first = np.full(len(api.threads.pid) + 1, len(api))
    first[api.thread[::-1]] = np.arange(len(api) - 1, -1, -1)
    calls = np.sort(first[:-1][first[:-1] < len(api)])
    _, of_process = np.unique(take(api.threads.pid, api.thread[calls]), return_index=True)
    return calls[of_process]


def _long(api: ApiCalls, rows: Int64, least: int) -> Int64:
    """Those of some calls that take at least some ns."""
    end = api.end[rows]
    result: Int64 = rows[(end != NEVER) & (end - api.start[rows] >= least)]
    return result


def _first_launches(profile: ProfileData, kernels: Int64) -> Int64:
    """The launches of those of some kernels that their GPU runs for the first time."""
    kernels = kernels[profile.api.of_kernel[kernels] >= 0]
    if not len(kernels):
        return np.empty(0, np.int64)
    name, device = texts(profile, "name").ids, numbers(profile, "device")
    _, rows = alike([np.ascontiguousarray(device), name])
    is_first = np.zeros(len(name), bool)
    is_first[rows] = True
    first = is_first[kernels]
    return unique(profile.api.of_kernel[kernels[first]]).astype(np.int64)
