"""Copies that the host waits for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.analysis.columns import numbers, texts
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NEVER
from fastprof.profile.instances import ApiCalls
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile

# The longest time between a copy and the call that waits for it: torch makes them back to back.
_PAIR_NS: Final = 20_000
# The shortest asynchronous copy that is said to block if the copy begins before the call returns.
_BLOCKS_NS: Final = 10_000


def blocked_ns(profile: Profile, rows: Int64) -> Int64:
    """The time that the host waits in the call of each copy, ns; 0 if it does not wait.

    -1 if the call is not recorded.

    rows : copies, kernel rows
    """
    api = profile.api
    calls, until = kept(profile, blocking_copies)
    known = api.end[until] != NEVER
    calls, until = calls[known], until[known]
    call = api.of_kernel[rows]
    found: Int64 = np.where(call >= 0, np.int64(0), np.int64(-1))
    if len(calls):
        last = np.searchsorted(calls, call, "right") - 1
        waits = (last >= 0) & (calls[last] == call)
        found[waits] = (api.end[until] - api.start[calls])[last[waits]]
    return found


def blocking_copies(profile: Profile) -> tuple[Int64, Int64]:
    """Copies that wait: rows of `profile.api`, and the call at which each ends.

    Copies without `Async`; asynchronous ones that a StreamSynchronize follows at once, with it; and
    those that return after the GPU has begun to copy, as from pageable memory.
    """
    api = profile.api
    alone, copies, waits = api.name.where_each(
        *map(_matches, (_SYNC_COPY, _ASYNC_COPY, _STREAM_WAIT))
    )
    first, second = _copies_and_waits(api, copies, waits)
    row = np.setdiff1d(_long_copies(profile), first)
    rows, until = np.concatenate([alone, first, row]), np.concatenate([alone, second, row])
    order = np.argsort(rows, kind="stable")
    return rows[order], until[order]


def _copies_and_waits(api: ApiCalls, copies: Int64, waits: Int64) -> tuple[Int64, Int64]:
    """Asynchronous copies, and the StreamSynchronize that follows each at once."""
    rows = np.union1d(copies, waits)
    rows = rows[np.argsort(api.thread[rows], kind="stable")]
    is_copy = np.isin(rows, copies)
    first, second = rows[:-1], rows[1:]
    after = api.start[second] - np.minimum(api.end[first], api.start[second])
    follows = is_copy[:-1] & ~is_copy[1:] & (api.thread[first] == api.thread[second])
    follows &= after <= _PAIR_NS
    return first[follows], second[follows]


def _long_copies(profile: Profile) -> Int64:
    """Calls of asynchronous copies from or to the host that return after the GPU has begun them."""
    api = profile.api
    copies = texts(profile, "copy_direction").where(lambda each: "H" in each)
    copies = copies[api.of_kernel[copies] >= 0]
    call: Int32 = api.of_kernel[copies]
    end = take(api.end, call)
    blocks = (end != NEVER) & (end > numbers(profile, "start")[copies])
    blocks &= end - api.start[call] >= _BLOCKS_NS
    blocks &= api.name.take(call).fits(_matches(_ASYNC_COPY))
    found: Int64 = call[blocks].astype(np.int64)
    return found


_SYNC_COPY: Final = regex(r"(?:cuda|cu|hip)Memcpy(?!\w*Async)")
_ASYNC_COPY: Final = regex(r"(?:cuda|cu|hip)Memcpy\w*Async")
_STREAM_WAIT: Final = regex(r"(?:cuda|cu|hip)StreamSynchronize")


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Whether a name begins with a pattern."""
    return lambda name: bool(pattern.match(name))
