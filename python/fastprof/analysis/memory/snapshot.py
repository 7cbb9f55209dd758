"""`memory` of a memory snapshot of torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.memory.blocks import Blocks, blocks_of
from fastprof.analysis.memory.headings import memory_keys
from fastprof.analysis.memory.rows import empty_table, rows_of
from fastprof.analysis.memory.snapshot_columns import SnapshotColumns
from fastprof.analysis.memory.snapshot_events import LiveEvents, live_events
from fastprof.analysis.memory.snapshot_overview import lines_of, values_of
from fastprof.analysis.selection import selected
from fastprof.errors import ReportError
from fastprof.model.columns import Values
from fastprof.model.markers import SourceLines
from fastprof.model.names import unknown_name
from fastprof.model.snapshot import Snapshot
from fastprof.model.table import Table
from fastprof.profile.reports import Where
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
