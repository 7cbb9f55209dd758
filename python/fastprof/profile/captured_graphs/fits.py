"""How well the kernels of a graph launch match a capture, by common subsequences in graph order.

ROCm records no sizes for replayed kernels: they have those of captured API calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.trace import Activity, Configs, Trace
from fastprof.profile.gpu_work import short_name

# Minimum share of matching work on both sides.
MIN_RATE = 0.95


@dataclass(frozen=True)
class Fit:
    """The mapping of a replay's items to those of a capture.

    Attributes
    ----------
    place : int64 [items of the replay], index of the item in the capture, -1 for none
    matched : number of mapped items
    of : number of items in the longer of both
    by_name : True if kernel names were compared. If the capture records no names, equal counts of
        kernels, copies and fills were required instead.
    grids_differ : number of mapped kernels with another grid than in the capture
    """

    place: Places
    matched: int
    of: int
    by_name: bool
    grids_differ: int = 0

    @property
    def rate(self) -> float:
        """The share of mapped items, 0 to 1."""
        return self.matched / self.of if self.of else 0.0

    @property
    def is_good(self) -> bool:
        """Whether the mapping is reliable enough to use."""
        few = self.grids_differ <= (1 - MIN_RATE) * self.matched
        return self.rate >= MIN_RATE and few


def fit(replays: Replays, launch: int, captures: Sequences, capture: int) -> Fit:
    """Compare a graph launch with a capture.

    If the capture has names, names and their order must agree. Kernels of several streams run in
    any order; then the k-th kernel of a name matches the k-th captured one.
    """
    here, there = replays.of(launch), captures.of(capture)
    key = replays.key[here]
    items = np.arange(there.stop - there.start)
    if np.all((key < 0) | (key > FILL)):  # no copies: they may not have been read
        of_capture = captures.key[there]
        items = items[(of_capture < 0) | (of_capture > FILL)]
    by_start = np.argsort(replays.start[here], kind="stable")
    many_streams = len(unique(replays.stream[here])) > 1
    orders = [by_start]
    if many_streams and replays.has_nodes[launch]:
        orders.append(np.arange(len(key)))
    n, of = len(key), max(len(key), len(items))
    place = np.full(n, -1, np.int64)
    by_name = bool(np.any(captures.key[there][items] > FILL))
    least = math.ceil(MIN_RATE * of)
    if min(n, len(items)) < least:
        return Fit(place, 0, of, by_name)
    if not by_name:
        order = orders[-1]
        if not many_streams or replays.has_nodes[launch]:
            ran, put = _kinds(key[order]), _kinds(captures.key[there][items])
            for kind in (UNNAMED, COPY, FILL):
                if np.sum(ran == kind) == np.sum(put == kind):
                    place[order[ran == kind]] = items[put == kind]
    else:
        result = _named(
            [replays.key[here], replays.short[here]],
            [captures.key[there][items], captures.short[there][items]],
            orders,
            many_streams,
            least,
        )
        place[result[0]] = items[result[1]]
    rows = np.flatnonzero(place >= 0)
    ran, captured = replays.grid[here][rows], captures.grid[there][place[rows]]
    differ = (
        np.all(ran >= 0, axis=1) & np.all(captured >= 0, axis=1) & np.any(ran != captured, axis=1)
    )
    return Fit(place, len(rows), of, by_name, int(differ.sum()))


def _named(
    left: list[Numbers], right: list[Numbers], orders: list[Places], many_streams: bool, least: int
) -> tuple[Places, Places]:
    """Positions with equal names on both sides: by full names, otherwise by short names.

    If too few match in order, kernels of several streams are matched in any order.
    """
    most: tuple[Places, Places] = np.empty(0, np.int64), np.empty(0, np.int64)
    for ran, captured in zip(left, right, strict=True):
        alike = by_occurrence(ran, captured)
        if len(alike[0]) + int(np.sum(captured == UNNAMED)) < least:
            continue
        for order in orders:
            result = in_order(ran[order], captured, least)
            if len(result[0]) > len(most[0]):
                most = order[result[0]], result[1]
        if many_streams and len(alike[0]) > len(most[0]):
            most = alike
        if len(most[0]) >= least:
            break
    return most


def most_alike(
    replays: Replays, launch: int, captures: Sequences, capture: int
) -> tuple[float, int, int, bool]:
    """The similarity of a graph launch and a capture, ignoring order.

    Returns
    -------
    The share of common names (of the counts, if the capture has no names), the number of items of
    each, and whether names were compared.
    """
    ran, put = replays.key[replays.of(launch)], captures.key[captures.of(capture)]
    if np.all((ran < 0) | (ran > FILL)):
        put = put[(put < 0) | (put > FILL)]
    by_name = bool(np.any(put > FILL))
    alike = len(by_occurrence(ran, put)[0]) if by_name else min(len(ran), len(put))
    return alike / max(len(ran), len(put), 1), len(ran), len(put), by_name


def _kinds(key: Numbers) -> Numbers:
    """COPY, FILL, or UNNAMED for kernels."""
    return np.where((key >= 0) & (key <= FILL), key, UNNAMED)


Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

_BELOW = -(1 << 30)
_MAX_CELLS = 1 << 25  # larger tables are not computed; the result is then "nothing in common"


def in_order(left: Numbers, right: Numbers, least: int) -> tuple[Places, Places]:
    """A longest common subsequence with at least `least` elements.

    Parameters
    ----------
    left, right : int32 [n], [m]; a negative number on the right equals any on the left

    Returns
    -------
    int64 [k], int64 [k]
        Positions of the elements on the left and on the right, ascending; empty if fewer than
        `least` elements are common.

    Notes
    -----
    Dynamic programming along the diagonal. Cost: n * d for at most d unmatched elements.
    """
    short = min(len(left), len(right))
    same = _equal(left[:short], right[:short])
    head = short if same.all() else int(np.argmin(same))
    same = _equal(left[::-1][: short - head], right[::-1][: short - head])
    tail = short - head if same.all() else int(np.argmin(same))
    n, m = len(left) - head - tail, len(right) - head - tail
    least -= head + tail
    inner = _between(left[head : head + n], right[head : head + m], max(least, 0))
    if inner is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ends = (np.arange(-tail, 0) + len(left), np.arange(-tail, 0) + len(right))
    first, second = (
        np.concatenate([np.arange(head), found + head, end])
        for found, end in zip(inner, ends, strict=True)
    )
    return first, second


def _equal(left: Numbers, right: Numbers) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = (left == right) | (right < 0)
    return same


def _between(left: Numbers, right: Numbers, least: int) -> tuple[Places, Places] | None:
    """`in_order` without the common prefix and suffix; None if too few elements are common."""
    n, m = len(left), len(right)
    if least > min(n, m):
        return None
    # A path from (0, 0) to (n, m) has at most n - least steps down and m - least to the right.
    low, width = least - n, n + m - 2 * least + 1
    if (n + 1) * width > _MAX_CELLS:
        return None
    longest = _table(left, right, low, width)
    if longest[n, m - n - low] < least:
        return None
    results = []
    i, j = n, m
    while i and j:
        here = longest[i, j - i - low]
        at = j - i - low
        if at + 1 < width and longest[i - 1, at + 1] == here:
            i -= 1
        elif at and longest[i, at - 1] == here:
            j -= 1
        else:
            i, j = i - 1, j - 1
            results.append((i, j))
    places = np.array(results[::-1], np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _table(left: Numbers, right: Numbers, low: int, width: int) -> npt.NDArray[np.int32]:
    """The length of the longest common subsequence of left[:i] and right[:j], at
    [i, j - i - low]."""
    n, m = len(left), len(right)
    longest = np.full((n + 1, width), _BELOW, np.int32)
    offsets = np.arange(low, low + width)
    longest[0, (offsets >= 0) & (offsets <= m)] = 0
    for i in range(1, n + 1):
        j = offsets + i
        inside = (j >= 0) & (j <= m)
        before = longest[i - 1]
        up = np.append(before[1:], _BELOW)
        to = right[np.clip(j - 1, 0, max(m - 1, 0))] if m else np.zeros(width, np.int32)
        same = (j >= 1) & ((to == left[i - 1]) | (to < 0)) & (m > 0)
        row = np.maximum(up, np.where(same, before + 1, _BELOW))
        longest[i] = np.where(inside, np.maximum.accumulate(np.where(inside, row, _BELOW)), _BELOW)
    return longest


def by_occurrence(left: Numbers, right: Numbers) -> tuple[Places, Places]:
    """Pair the k-th occurrence of each number on both sides. Returns positions, unordered."""
    places = [np.argsort(side, kind="stable") for side in (left, right)]
    numbers = [side[place] for side, place in zip((left, right), places, strict=True)]
    pairs = [
        number.astype(np.int64) << 32 | np.arange(len(number)) - np.searchsorted(number, number)
        for number in numbers
    ]
    _, first, second = np.intersect1d(pairs[0], pairs[1], assume_unique=True, return_indices=True)
    return places[0][first], places[1][second]


# Keys of items: an id of the kernel name, or one of these.
UNNAMED, COPY, FILL = -1, 0, 1

GRAPH_LAUNCH = regex(r"(?:cuda|cu|hip)Graph\w*Launch")
# ROCm copies and fills with kernels of these names.
_ROCM = ((COPY, "__amd_rocclr_copy"), (FILL, "__amd_rocclr_fill"))


class Keys:
    """Ids of kernel names, shared by all traces."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"[copy]": COPY, "[fill]": FILL}

    def of(self, names: Sequence[str | None]) -> tuple[Int32, Int32]:
        """Ids of names and of their short forms; UNNAMED for None and at the end."""
        results = [(UNNAMED, UNNAMED) if name is None else self._of(name) for name in names]
        full, short = np.array([*results, (UNNAMED, UNNAMED)], np.int32).T.copy()
        return full, short

    def _of(self, name: str) -> tuple[int, int]:
        for key, start in _ROCM:
            if name.startswith(start):
                return key, key
        plain = name.removesuffix(".kd").strip()
        ids = self._ids
        return (
            ids.setdefault(plain, len(ids)),
            ids.setdefault(f"short {short_name(plain)}", len(ids)),
        )


@dataclass()
class Sequences:
    """The work of several graphs, concatenated.

    Attributes
    ----------
    begin : int64 [graphs + 1], index of the first item of each graph
    row : int64 [items], row of Trace.kernels or Trace.captured
    key, short : int32 [items], see `Keys`
    grid : int32 [items, 3], -1 if unknown
    """

    begin: Int64
    row: Int64
    key: Int32
    short: Int32
    grid: Int32

    def __len__(self) -> int:
        return len(self.begin) - 1

    def of(self, number: int) -> slice:
        """The items of a graph."""
        return slice(int(self.begin[number]), int(self.begin[number + 1]))


@dataclass()
class Replays(Sequences):
    """The work of each graph launch.

    Items are ordered by graph node, or by stream and start if nodes have no ids. So each launch of
    a graph gives the same sequence.

    Attributes
    ----------
    launch : int32 [launches of graphs], row of Trace.launches
    start : int64 [items], ns
    stream : int32 [items]
    has_nodes : bool [launches of graphs], whether all items have a node id
    """

    launch: Int32
    start: Int64
    stream: Int32
    has_nodes: npt.NDArray[np.bool_]


def replays_of(trace: Trace, keys: Keys) -> Replays:
    """Graph launches with kernels in the trace and without recorded node creation."""
    kernels, configs = trace.kernels, trace.kernels.configs
    launches_graph = np.array(
        [bool(name and GRAPH_LAUNCH.match(name)) for name in trace.strings] + [False]
    )[trace.launches.name]
    of_graph = np.append(launches_graph, False)[kernels.launch]
    if kernels.origin is not None:
        of_graph &= kernels.origin < 0
    config = np.ascontiguousarray(kernels.config)
    rows = np.flatnonzero(of_graph & (take(configs.kind, config) != Activity.GRAPH))
    launch, start = kernels.launch[rows], kernels.start[rows]
    of_row = config[rows]
    stream, node = configs.stream[of_row], configs.graph_node[of_row]
    order = np.lexsort((start, np.where(node >= 0, node, stream), launch))
    rows, launch, start, stream = rows[order], launch[order], start[order], stream[order]
    of_row, node = of_row[order], node[order]
    used, begin = np.unique(launch, return_index=True)
    begin = np.append(begin, len(rows))
    full, short = (_keys(ids, configs.kind, configs.name) for ids in keys.of(trace.strings))
    return Replays(
        begin=begin,
        row=rows,
        key=full[of_row],
        short=short[of_row],
        grid=configs.grid[of_row],
        launch=used,
        start=start,
        stream=stream,
        has_nodes=np.array([np.all(node[a:b] >= 0) for a, b in pairwise(begin.tolist())], bool),
    )


def captures_of(trace: Trace, keys: Keys) -> Sequences:
    """The captured graphs of a trace."""
    captured = trace.captured
    if captured is None:
        none = np.empty(0, np.int32)
        return Sequences(
            np.zeros(1, np.int64), none.astype(np.int64), none, none, none.reshape(0, 3)
        )
    row = np.argsort(captured.graph, kind="stable")
    begin = np.searchsorted(captured.graph[row], np.arange(captured.graph.max(initial=-1) + 2))
    full, short = (_keys(ids, captured.kind, captured.name)[row] for ids in keys.of(trace.strings))
    return Sequences(begin, row, full, short, captured.grid[row])


def _keys(of_name: Int32, kind: Int32, name: Int32) -> Int32:
    return np.where(
        kind == Activity.MEMCPY, COPY, np.where(kind == Activity.MEMSET, FILL, of_name[name])
    ).astype(np.int32)


Rows = npt.NDArray[np.int64]


def give_sizes(trace: Trace, row: Rows, captured: Rows) -> None:
    """Set grid and block of kernels without sizes, in place.

    row, captured : rows of Trace.kernels, and their rows of Trace.captured
    """
    kernels, calls = trace.kernels, trace.captured
    if calls is None:
        return
    configs = kernels.configs
    unknown = np.all(configs.grid[kernels.config[row]] < 0, axis=1)
    unknown &= np.all(calls.grid[captured] >= 0, axis=1)
    row, captured = row[unknown], captured[unknown]
    if not len(row):
        return
    grid, block = calls.grid[captured], calls.block[captured]
    kind, first = alike([kernels.config[row], grid, block])
    like = kernels.config[row[first]]
    changed = {"grid": grid[first], "block": block[first]}
    columns: dict[str, Any] = {
        field.name: getattr(configs, field.name) for field in fields(Configs)
    }
    for name, column in columns.items():
        if column is not None:
            columns[name] = np.concatenate([column, changed.get(name, column[like])])
    kernels.config = kernels.config.copy()
    kernels.config[row] = kind + np.int32(len(configs))
    kernels.configs = Configs(**columns)
