"""What host threads do at first use: load or compile code, create streams and contexts."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take, where
from fastprof._system.regex import regex
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.host.events import OpenRanges, ThreadEvents, grouped, in_order
from fastprof.model.arrays import Int64, union, unique
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import ALLOC, COPY, CREATE, LAUNCH, LOAD, OTHER, SYNC
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import ApiCalls

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
    fits = np.array([_compiles(meaning) for meaning in ranges.meanings], bool)
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
    is_inner = np.zeros(len(calls), bool)  # the runtime loads its own modules
    begin = np.full(len(calls), NEVER)
    working = np.zeros(len(api), bool)
    classes = api.call_class.where(lambda each: each in (LAUNCH, COPY, SYNC))
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
    fits = np.array([bool(_LIBRARY_HANDLE.match(each.name)) for each in ranges.meanings], bool)
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
    found: Int64 = rows[(end != NEVER) & (end - api.start[rows] >= least)]
    return found


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
