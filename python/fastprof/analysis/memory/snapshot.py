"""`memory` of a memory snapshot of torch: its blocks, their stacks, its history."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis import keys
from fastprof.analysis.memory.blocks import Blocks, MemoryEvents, Use, blocks_of
from fastprof.analysis.memory.columns import memory_keys
from fastprof.analysis.memory.report import drawn, timeline_of
from fastprof.analysis.memory.rows import GPU, empty_table, rows_of
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.heading import unknown_name
from fastprof.model.markers import SourceLines
from fastprof.model.metadata import About, Snapshot
from fastprof.model.numbers import quantity
from fastprof.model.table import Table
from fastprof.readers import torch_snapshot


def memory_snapshot(
    path: str | os.PathLike[str],
    by: str | Sequence[str] | None = None,
    device: str | int | None = None,
    where: Where | None = None,
    *,
    steps: str | None = None,
    mine: str | Sequence[str] = (),
) -> Table:
    """Peak memory of a memory snapshot of torch, and the code that allocated it.

    The file is that of `torch.cuda.memory._dump_snapshot`, a pickle. Nothing in it is executed; a
    file with more than plain data is refused. Sizes are those that the program requested, in
    bytes.

    Parameters
    ----------
    path : path of the snapshot
    by : keys: line, library_line, function, file, category, device, stream or size; by default
        `line`, or `size` without stacks
    device : `gpu` or the number of a GPU; by default all
    where : only these allocations, see `fastprof.analysis.selection`
    steps : not supported
    mine : your own source files, see `fastprof.open`

    Returns
    -------
    Table
        Columns as in the report `memory`: at_peak_bytes, allocated_bytes, allocations,
        at_end_bytes, ...; `facts["memories"]` has the time line, segments and out-of-memory events
        of each GPU.

    Raises
    ------
    BadInputError
        The file cannot be read, is damaged, is no memory snapshot, or contains more than plain
        data.
    ReportError
        A key or GPU is unknown, or `steps` is given.
    """
    if steps is not None:
        raise ReportError("--steps: expected a trace, found a memory snapshot, which has no steps")
    names = (by,) if isinstance(by, str) else tuple(by or ())
    if names:
        memory_keys(",".join(names))
    for name in names:
        if name not in _KEYS:
            raise ReportError(unknown_name("key of a memory snapshot", name, _KEYS))
    snapshot = torch_snapshot.read(path)
    events = live_events(snapshot, _numbers(snapshot, device))
    facts = {"file": snapshot.name, "settings": snapshot.settings}
    if not len(events.events):
        return empty_table("no live memory and no history", facts)
    blocks = blocks_of(events.events, newest_first=True)
    columns = SnapshotColumns(snapshot, events, SourceLines(mine))
    names = names or (("line",) if snapshot.stacks else ("size",))
    of_blocks = {name: _key(columns, blocks, name) for name in names}
    chosen = selected(columns, where)
    rows = None if chosen is None else chosen[blocks.begin[blocks.is_recorded]]
    table = rows_of(blocks, of_blocks, rows, None)
    lines: list[str] = []
    values: list[dict[str, Any]] = []
    for use in blocks.uses:
        lines += lines_of(snapshot, use, events)
        values.append(values_of(snapshot, use, events))
    return Table(
        table.columns,
        table.headings,
        lead=(*lines, ""),
        notes=_notes(snapshot, events),
        total=table.total,
        facts={**facts, "memories": values},
    )


_KEYS: Final = (
    *("line", "library_line", "function", "file", "category", "device", "stream", "size"),
)


def _numbers(snapshot: Snapshot, device: str | int | None) -> set[int]:
    """The selected GPUs."""
    numbers = {*snapshot.segments.device.tolist(), *snapshot.events.device.tolist()}
    if device is None or str(device).lower() == "gpu":
        return numbers
    if str(device).isdigit() and int(device) in numbers:
        return {int(device)}
    listed = ", ".join(map(str, sorted(numbers)))
    raise ReportError(f"expected gpu or a GPU of the snapshot ({listed}), found {device!r}")


def _key(columns: SnapshotColumns, blocks: Blocks, name: str) -> Values:
    own = blocks.is_recorded
    if name == "size":
        distinct, ids = np.unique(blocks.size[own], return_inverse=True)
        return Values(ids.astype(np.int32), distinct.tolist())
    values = columns.categories(blocks) if name == "category" else keys.key_of(columns, name)
    return Values(values.ids[blocks.begin[own]], values.values)


def _notes(snapshot: Snapshot, events: LiveEvents) -> tuple[str, ...]:
    notes = []
    if not len(snapshot.events):
        notes.append(
            "no history: the peak is the state at the snapshot; call "
            "torch.cuda.memory._record_memory_history() before the allocations"
        )
    elif events.n_older:
        notes.append(
            f"{events.n_older} live blocks are older than the history; an earlier peak is unknown"
        )
    if not snapshot.stacks:
        notes.append(
            "no stacks: call torch.cuda.memory._record_memory_history(context='all') before the "
            "allocations"
        )
    if events.n_astray:
        notes.append(
            f"{events.n_astray} blocks are live in the history and absent from the segments: some "
            "frees were not recorded"
        )
    return tuple(notes)


Whole = npt.NDArray[Any]

_PYTHON: Final = re.compile(r"(?:\.py|>):\d+ ")


class SnapshotColumns:
    """Columns of events: `trace`, `line`, `library_line`, `device`, `stream`.

    Attributes
    ----------
    about : About
        Without metadata.
    names : list of str
        The columns.
    """

    def __init__(self, snapshot: Snapshot, live: LiveEvents, lines: SourceLines) -> None:
        self.about = About("snapshot")
        self._snapshot, self._live = snapshot, live
        history, blocks = snapshot.events, snapshot.blocks
        self._stacks = Values(self._of(history.stack, blocks.stack), snapshot.stacks)
        stream = take(snapshot.segments.stream, blocks.segment)
        self._makers: dict[str, Callable[[], Column]] = {
            "trace": lambda: self._stacks.mapped(_python_frames).mapped(lines.trace),
            "line": lambda: self._stacks.mapped(_python_frames).mapped(lines.line),
            "library_line": lambda: self._stacks.mapped(_python_frames).mapped(lines.library_line),
            "device": lambda: Values(live.events.memory, live.events.names),
            "stream": lambda: Ints(self._of(history.stream, stream)),
        }
        self.names = list(self._makers)

    def __len__(self) -> int:
        return len(self._live.events)

    def column(self, name: str) -> Column:
        """A column of `names`."""
        return self._makers[name]()

    def categories(self, blocks: Blocks) -> Values:
        """[events] The category: the recorded one, else by the stack.

        The first of these that a frame shows: `optimizer state` in torch.optim and live at the end;
        `gradients` in a backward pass and live at the end; `parameters` in a constructor of a
        module or a move of its parameters; `inputs` in torch.utils.data; `activations` in the
        forward pass of a module. `temporary` in the optimizer or a backward pass and freed;
        `unknown` otherwise.
        """
        history, state = self._snapshot.events, self._snapshot.blocks
        names = [*history.category.values, *state.category.values]
        other = np.where(
            state.category.ids < 0,
            np.int32(-1),
            state.category.ids + np.int32(len(history.category.values)),
        )
        recorded = Values(self._of(history.category.ids, other), names)
        by_stack = self._stacks.mapped(_category)
        of_stack = by_stack.array()
        is_live = np.zeros(len(self), bool)
        own = blocks.is_recorded
        is_live[blocks.begin[own]] = blocks.is_live_at_end[own]
        results = [
            written or _final(guess, live)
            for written, guess, live in zip(
                recorded.array().tolist(), of_stack.tolist(), is_live.tolist(), strict=True
            )
        ]
        ids = {name: i for i, name in enumerate(dict.fromkeys(results))}
        return Values(np.array([ids[result] for result in results], np.int32), list(ids))

    def _of(self, of_events: Whole, of_blocks: Whole) -> Whole:
        """[events] A value of each event, or of the block that is older than the history."""
        row = self._live.events.row
        older = row < 0
        result = np.full(len(row), -1, of_events.dtype)
        result[older] = of_blocks[-1 - row[older]]
        result[~older] = of_events[row[~older]]
        return result


def _python_frames(stack: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(frame for frame in stack if _PYTHON.search(frame))


# In order: the first pattern that a frame of the stack contains.
_CATEGORIES: Final = (
    ("optimizer state", re.compile(r"(?:^|/)torch/optim/")),
    (
        "gradients",
        re.compile(
            r"torch/(?:_tensor|autograd/__init__)\.py:\d+ backward|torch::autograd::Engine"
            r"|Backward\d*::apply|AccumulateGrad"
        ),
    ),
    (
        "parameters",
        re.compile(
            r"torch/nn/(?:modules/\w+|parameter)\.py:\d+ (?:__init__|reset_parameters|_apply)"
        ),
    ),
    ("inputs", re.compile(r"torch/utils/data/")),
    ("activations", re.compile(r"torch/nn/modules/module\.py:\d+ _(?:wrapped_)?call_impl")),
)
_OF_LIVE: Final = frozenset({"optimizer state", "gradients"})


def _category(stack: tuple[str, ...]) -> str | None:
    text = "\n".join(frame.replace("\\", "/") for frame in stack)
    return next((name for name, pattern in _CATEGORIES if pattern.search(text)), None)


def _final(guess: str | None, is_live: bool) -> str:
    if guess in _OF_LIVE and not is_live:
        return "temporary"
    return guess or "unknown"


LIVE: Final = "active_allocated"
# By how an action changes the reserved bytes.
_RESERVES: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


@dataclass(frozen=True, eq=False)
class LiveEvents:
    """The events, first those of blocks older than the history.

    Parameters
    ----------
    events : in the order of the file; `row` is the row in `Snapshot.events`, or of an older block,
        `-1 - row` of `Snapshot.blocks`
    is_timed : whether the history records times; otherwise `events.time` numbers the events
    n_older : number of live blocks that the history does not allocate
    n_astray : number of blocks that are live in the history and not in the segments
    """

    events: MemoryEvents
    is_timed: bool
    n_older: int
    n_astray: int


def live_events(snapshot: Snapshot, devices: set[int]) -> LiveEvents:
    """The allocations and frees of some devices."""
    history, blocks = snapshot.events, snapshot.blocks
    own = np.isin(history.device, list(devices))
    allocates, frees = are(history.action, "alloc"), _frees(snapshot)
    rows = np.flatnonzero(own & (allocates | frees) & (history.size > 0))
    device_of_block = np.append(snapshot.segments.device, np.int32(-1))[blocks.segment]
    live = are(blocks.state, LIVE) & np.isin(device_of_block, list(devices)) & (blocks.size > 0)
    older, n_astray = _older(snapshot, rows, allocates, np.flatnonzero(live), device_of_block)
    is_timed = bool(len(rows)) and bool((history.time[rows] >= 0).all())
    n = len(older)
    time = history.time[rows] if is_timed else np.arange(n, n + len(rows))
    first = int(time.min(initial=np.iinfo(np.int64).max)) if len(rows) else 0
    size = np.where(allocates[rows], history.size[rows], -history.size[rows])
    device = np.concatenate([device_of_block[older], history.device[rows]])
    numbers = np.unique(device)
    unknown = np.full(n + len(rows), -1, np.int64)
    events = MemoryEvents(
        names=[f"{GPU} {number}" for number in numbers.tolist()],
        memory=np.searchsorted(numbers, device).astype(np.int32),
        time=np.concatenate([np.full(n, first if is_timed else 0), time]),
        size=np.concatenate([np.maximum(blocks.requested[older], 1), size]),
        address=np.concatenate([blocks.address[older], history.address[rows]]),
        allocated=unknown,
        reserved=np.concatenate([np.full(n, -1), _reserved(snapshot)[rows]]),
        row=np.concatenate([-1 - older, rows]),
        is_complete=True,
    )
    return LiveEvents(events, is_timed, n, n_astray)


def are(texts: Values, *wanted: str) -> Bools:
    """Whether each text is one of these."""
    return texts.fits(lambda text: text in wanted)


def _frees(snapshot: Snapshot) -> Bools:
    """The events that free a block: requests, or completions where requests are not recorded."""
    requested = are(snapshot.events.action, "free_requested", "free")
    if requested.any():
        return requested
    return are(snapshot.events.action, "free_completed")


def _older(
    snapshot: Snapshot, rows: Int64, allocates: Bools, live: Int64, device_of_block: Int32
) -> tuple[Int64, int]:
    """The live blocks that the history does not allocate, and how many are live only there.

    rows : allocations and frees in the history
    live : live blocks of the segments
    """
    history = snapshot.events
    last: dict[tuple[int, int], bool] = {}
    keys = zip(history.device[rows].tolist(), history.address[rows].tolist(), strict=True)
    for key, is_live in zip(keys, allocates[rows].tolist(), strict=True):
        last[key] = is_live
    of_blocks = list(
        zip(device_of_block[live].tolist(), snapshot.blocks.address[live].tolist(), strict=True)
    )
    older = np.array([not last.get(key, False) for key in of_blocks], bool)
    in_history = {key for key, is_live in last.items() if is_live}
    return live[older], len(in_history - set(of_blocks))


def _reserved(snapshot: Snapshot) -> Int64:
    """[events] The bytes in segments after each event, from those at the end backwards."""
    history, segments = snapshot.events, snapshot.segments
    change = np.zeros(len(history), np.int64)
    for action, sign in _RESERVES.items():
        change += sign * np.where(are(history.action, action), history.size, 0)
    result = np.empty(len(history), np.int64)
    for device in np.unique(history.device):
        rows = np.flatnonzero(history.device == device)
        end = segments.size[segments.device == device].sum()
        total = np.cumsum(change[rows])
        result[rows] = end - total[-1] + total
    return result


_MOST: Final = 3  # out-of-memory events in text


class _State(NamedTuple):
    """The segments of a GPU at the snapshot; bytes.

    Parameters
    ----------
    segments : number
    reserved : size of the segments
    allocated : of live blocks
    rounding : part of `allocated` that was not requested
    pending : of freed blocks that a stream still uses
    inactive : the rest
    releasable : of segments without other blocks, which empty_cache returns to CUDA
    largest_free : the largest inactive block
    """

    segments: int
    reserved: int
    allocated: int
    rounding: int
    pending: int
    inactive: int
    releasable: int
    largest_free: int


def _state(snapshot: Snapshot, number: int) -> _State:
    segments, blocks = snapshot.segments, snapshot.blocks
    own = segments.device == number
    of_gpu = np.append(own, False)[blocks.segment]
    live = of_gpu & are(blocks.state, LIVE)
    inactive = of_gpu & are(blocks.state, "inactive")
    used = np.bincount(blocks.segment[of_gpu & ~inactive], minlength=len(segments)) > 0
    allocated, free = blocks.size[live], blocks.size[inactive]
    return _State(
        segments=int(own.sum()),
        reserved=int(segments.size[own].sum()),
        allocated=int(allocated.sum()),
        rounding=int((allocated - blocks.requested[live]).sum()),
        pending=int(blocks.size[of_gpu & ~live & ~inactive].sum()),
        inactive=int(free.sum()),
        releasable=int(segments.size[own & ~used].sum()),
        largest_free=int(free.max(initial=0)),
    )


def _out_of_memory(snapshot: Snapshot, number: int) -> list[dict[str, int | None]]:
    """The out-of-memory events of a GPU: requested bytes, bytes free in CUDA, time in ns."""
    history = snapshot.events
    rows = np.flatnonzero((history.device == number) & are(history.action, "oom"))
    columns = (history.size, history.free, history.time)
    return [
        dict(zip(("requested_bytes", "free_bytes", "ns"), map(_known, number), strict=True))
        for number in zip(*(column[rows].tolist() for column in columns), strict=True)
    ]


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _number(use: Use) -> int:
    return int(use.name.removeprefix(f"{GPU} "))


def lines_of(snapshot: Snapshot, use: Use, live: LiveEvents) -> list[str]:
    """The lines of one GPU: peak, segments, out-of-memory events, time line."""
    state = _state(snapshot, _number(use))
    height, now = use.base + use.peak_above, use.base + int(use.above[-1])
    place = _place(use, live)
    lines = [f"{use.name}: peak {_bytes(height)} requested{place}; at the snapshot {_bytes(now)}"]
    if state.reserved:
        share = state.inactive / state.reserved
        pending = f"{_bytes(state.pending)} waits for a stream, " if state.pending else ""
        lines += [
            f"reserved {_bytes(state.reserved)} in {state.segments} segments: "
            f"{_bytes(state.allocated)} allocated, {pending}{_bytes(state.inactive)} ({share:.1%}) "
            "free",
            f"free {_bytes(state.releasable)} in empty segments, "
            f"{_bytes(state.inactive - state.releasable)} between blocks; largest free block "
            f"{_bytes(state.largest_free)}",
        ]
    failures = _out_of_memory(snapshot, _number(use))
    for failure in failures[:_MOST]:
        free = failure["free_bytes"]
        left = "" if free is None else f"; CUDA had {_bytes(free)} free"
        lines.append(f"out of memory: {_bytes(failure['requested_bytes'] or 0)} requested{left}")
    if len(failures) > _MOST:
        lines.append(f"{len(failures) - _MOST} more out-of-memory events")
    if len(snapshot.events):
        lines.append(drawn(use))
    return lines


def _place(use: Use, live: LiveEvents) -> str:
    if live.is_timed and use.peak >= 0:
        after = quantity(int(use.time[use.peak]) - int(use.time[0]), "ns")
        return f", {after} after the start of the history"
    return ""


def values_of(snapshot: Snapshot, use: Use, live: LiveEvents) -> dict[str, Any]:
    """The values of one GPU for JSON; unknown ones are None. Times are ns, sizes bytes."""
    state = _state(snapshot, _number(use))
    is_timed = live.is_timed and use.peak >= 0
    return {
        "memory": use.name,
        "events": len(use.rows),
        "peak_bytes": use.base + use.peak_above,
        "peak_ns": int(use.time[use.peak]) if is_timed else None,
        "reserved_at_peak_bytes": _known(int(use.reserved[use.peak]))
        if use.reserved is not None and use.peak >= 0
        else None,
        "end_bytes": use.base + int(use.above[-1]),
        "state": {
            f"{name}_bytes" if name != "segments" else name: value
            for name, value in state._asdict().items()
        },
        "out_of_memory": _out_of_memory(snapshot, _number(use)),
        "timeline": timeline_of(use) if live.is_timed else None,
    }


def _bytes(size: float) -> str:
    return quantity(size, "bytes")
