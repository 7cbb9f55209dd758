"""`memory` of a memory snapshot of torch.

Columns of the allocations in a snapshot, from their stacks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof.analysis import keys
from fastprof.analysis.memory.blocks import Blocks, blocks_of
from fastprof.analysis.memory.columns import memory_keys
from fastprof.analysis.memory.rows import empty_table, rows_of
from fastprof.analysis.memory.snapshot_events import LiveEvents, live_events
from fastprof.analysis.memory.snapshot_text import lines_of, values_of
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.errors import ReportError
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.markers import SourceLines
from fastprof.model.metadata import About
from fastprof.model.names import unknown_name
from fastprof.model.snapshot import Snapshot
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
    found = {*snapshot.segments.device.tolist(), *snapshot.events.device.tolist()}
    if device is None or str(device).lower() == "gpu":
        return found
    if str(device).isdigit() and int(device) in found:
        return {int(device)}
    listed = ", ".join(map(str, sorted(found)))
    raise ReportError(f"expected gpu or a GPU of the snapshot ({listed}), found {device!r}")


def _key(columns: SnapshotColumns, blocks: Blocks, name: str) -> Values:
    own = blocks.is_recorded
    if name == "size":
        distinct, ids = np.unique(blocks.size[own], return_inverse=True)
        return Values(ids.astype(np.int32), distinct.tolist())
    found = columns.categories(blocks) if name == "category" else keys.key_of(columns, name)
    return Values(found.ids[blocks.begin[own]], found.values)


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
        found = [
            written or _final(guess, live)
            for written, guess, live in zip(
                recorded.array().tolist(), of_stack.tolist(), is_live.tolist(), strict=True
            )
        ]
        ids = {name: i for i, name in enumerate(dict.fromkeys(found))}
        return Values(np.array([ids[each] for each in found], np.int32), list(ids))

    def _of(self, of_events: Whole, of_blocks: Whole) -> Whole:
        """[events] A value of each event, or of the block that is older than the history."""
        row = self._live.events.row
        older = row < 0
        found = np.full(len(row), -1, of_events.dtype)
        found[older] = of_blocks[-1 - row[older]]
        found[~older] = of_events[row[~older]]
        return found


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
