"""All ranks of a run as one Perfetto trace, on the clock of the run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import numpy as np

from fastprof._core import _nest
from fastprof._core._packets import Fields
from fastprof._core._take import take
from fastprof._system.output_file import output_file, protected
from fastprof.analysis.registry import Where
from fastprof.exports.events import read
from fastprof.exports.export import compressed_to
from fastprof.exports.perfetto import add_work
from fastprof.exports.perfetto import packets as proto
from fastprof.exports.perfetto.packets import Interned, clock_packets
from fastprof.exports.perfetto.tracks import FLOW, FLOW_END, Slices, TraceOutput, tracks_of_lanes
from fastprof.model.arrays import Int32, Int64
from fastprof.model.numbers import quantity
from fastprof.profile.data import ProfileData
from fastprof.profile.load import load
from fastprof.ranks.run.pictures import KINDS, TRANSFER, WAIT, chain_slices
from fastprof.ranks.run.record import COMPUTE, COPY, CallSignature, Label
from fastprof.ranks.run.result import RunData

_OWN_PIDS: Final = 1_000_000  # and the number of the rank: of ranks whose process ids are equal
_BEFORE: Final = 3_600_000_000_000  # ns; host events precede the GPU work of a rank by less
Opened = Callable[[str], ProfileData]


def write_run_perfetto(
    run: RunData,
    path: str | os.PathLike[str],
    *,
    kernels: bool = True,
    where: Where | None = None,
    opened: Opened | None = None,
) -> None:
    """Write a run to a file that appears when it is complete; see `write_run`.

    path : compressed with gzip if it ends with .gz

    Raises
    ------
    OutputError
        The file is one of the traces.
    """
    paths = [file.path for file in run.files]
    with protected(lambda: paths), output_file(path) as file, compressed_to(file, path) as target:
        write_run(run, target, kernels=kernels, where=where, opened=opened)


def write_run(
    run: RunData,
    file: BinaryIO,
    *,
    kernels: bool = True,
    where: Where | None = None,
    opened: Opened | None = None,
) -> None:
    """Write a run as a Perfetto trace: a process for each rank.

    A rank has its steps, its time line (work, idle time by cause, waits, transfers), and the calls
    of its communication streams, with a flow from each call that waits to the call of the last
    rank. With kernels, the traces are read again, one at a time.

    Parameters
    ----------
    file : binary file
    kernels : whether to add the GPU work, ranges and API calls of all ranks
    where : the GPU work to add
    opened : opens a trace, with the options of the run

    Raises
    ------
    BadInputError
        A trace has changed, or cannot be read any more.
    ReportError
        A condition of `where` is malformed.
    """
    output = TraceOutput(_origin(run) if kernels else run.begin, has_ids=False)
    file.write(clock_packets(output.origin))
    processes = [*_processes(run, output)]
    for rank, process in enumerate(processes):
        _add_steps(run, rank, output, process)
        _add_chain(run, rank, output, process)
    for rank, process in enumerate(processes):
        _add_calls(run, rank, output, process)
    output.n_flows = len(run.instances.calls)
    output.flush(file)
    if kernels:
        for rows in _by_file(run):
            _add_kernels(run, rows, output, processes, where, opened or _opened)
            output.flush(file)


def _origin(run: RunData) -> int:
    """A time before all events of all files: that of clocks which start at 0, on the clock of the
    run; events before it are as rare as negative times."""
    shifts = [_shift(run, rank) for rank in range(len(run))]
    lowest = min((record.chain.begin for record in run.records), default=0)
    return min(0, *shifts) - (_BEFORE if lowest < 0 else 0)


def _shift(run: RunData, rank: int) -> int:
    """What is added to the times of a rank, ns: that of the middle of its recording."""
    chain = run.records[rank].chain
    middle = (chain.begin + int(chain.time[-1])) // 2
    return int(run.clocks.moved(np.array([middle]), np.array([rank], np.int32))[0]) - middle


def _processes(run: RunData, output: TraceOutput) -> Iterator[int]:
    """The track of each rank; a process that several ranks share has no pid of its own."""
    pids = Counter(record.pid for record in run.records)
    for number, record in zip(run.numbers, run.records, strict=True):
        pid = record.pid
        if not 0 < pid < 1 << 31 or pids[pid] > 1:
            pid = _OWN_PIDS + number
        name = f"rank {number}"
        parts = proto.message(3, proto.number(1, pid), proto.text(6, name))
        yield output.tracks.add(name, 0, parts, about=record.path)


def _add(
    output: TraceOutput,
    names: list[tuple[str, int]],
    slices: tuple[Int64, Int64, Int32],
    fields: Callable[[Int32], Fields],
) -> None:
    """Add slices that may nest.

    slices : start, end, and index into `names`, the name and parent of each track
    fields : the fields of the slices in an order
    """
    start, end, which = slices
    order = _nest.order(start, end)
    if order is None:
        order = np.arange(len(start), dtype=np.int32)
    start, end, which = take(start, order), take(end, order), take(which, order)
    track = tracks_of_lanes(
        output.tracks, names, [0] * len(names), (start, end, which), may_nest=True
    )
    Slices(start, end, track, fields(order)).write_to(output)


def _add_steps(run: RunData, rank: int, output: TraceOutput, process: int) -> None:
    times, numbers = run.step_times[rank], run.step_numbers[rank]
    if not len(numbers) or run.records[rank].steps.source == "none":
        return
    category = proto.number(3, output.texts.category("step"))
    texts = [
        proto.number(10, output.texts.event(f"step {number}")) + category
        for number in numbers.tolist()
    ]

    def fields(order: Int32) -> Fields:
        result = Fields(len(order))
        result.add_texts(order, texts)
        return result

    which = np.zeros(len(numbers), np.int32)
    _add(output, [("steps", process)], (times.start, times.end, which), fields)


def _add_chain(run: RunData, rank: int, output: TraceOutput, process: int) -> None:
    slices, labels, texts = chain_slices(run, rank), run.records[rank].labels, output.texts
    looks, look = np.unique(np.stack([slices.kind, slices.label]), axis=1, return_inverse=True)
    looked = [
        _chain_text(texts, kind, labels[label] if label >= 0 else None)
        for kind, label in looks.T.tolist()
    ]
    numbers = {
        "kernels": np.where(slices.count > 0, slices.count, -1).astype(np.int64),
        **_of_instance(run, np.where(slices.kind >= WAIT, slices.call, -1)),
    }

    def fields(order: Int32) -> Fields:
        result = Fields(len(order))
        result.add_texts(take(look.ravel().astype(np.int32), order), looked)
        _add_numbers(result, texts, numbers, order)
        return result

    which = np.zeros(len(slices), np.int32)
    _add(output, [("time line", process)], (slices.start, slices.end, which), fields)


def _chain_text(texts: Interned, kind: int, label: Label | None) -> bytes:
    """Name, category and arguments of a slice of the time line."""
    is_work = kind in (COMPUTE, COPY)
    is_idle = not is_work and kind not in (WAIT, TRANSFER)
    name = f"idle: {KINDS[kind]}" if is_idle else KINDS[kind]
    if is_work and label is not None and label.op:
        name = label.op
    parts = [
        proto.number(10, texts.event(name)),
        proto.number(3, texts.category("idle" if is_idle else KINDS[kind])),
    ]
    if label is not None:
        told = {"layer": label.layer, "shapes": label.shape, "line": label.line}
        parts += [texts.annotation(key, text) for key, text in told.items() if text]
    return b"".join(parts)


def _add_numbers(fields: Fields, texts: Interned, numbers: dict[str, Int64], order: Int32) -> None:
    """Add arguments; -1 is unknown."""
    for name, values in numbers.items():
        outer, inner = texts.annotation_tags(name)
        fields.add_numbers(inner, take(np.ascontiguousarray(values), order), none=-1, outer=outer)


def _of_instance(run: RunData, calls: Int64) -> dict[str, Int64]:
    """Numbers of the instance of each call; -1 as a call is none."""
    waits = run.waits
    instance = np.append(waits.instances.of_call, -1)[calls].astype(np.int64)
    known = instance >= 0
    is_shared = known & np.append(waits.is_shared, False)[instance]
    numbers = np.array([*run.numbers, -1], np.int64)
    last = numbers[np.append(waits.last, -1)[instance]]
    return {
        "instance": instance,
        "last rank": np.where(is_shared, last, -1),
        "transfer (ns)": np.where(known, np.append(waits.transfer, -1)[instance], -1),
    }


def _add_calls(run: RunData, rank: int, output: TraceOutput, process: int) -> None:
    """Add the calls of a rank, each divided into its wait and its transfer."""
    waits, calls = run.waits, run.instances.calls
    rows = np.arange(*calls.bounds[rank : rank + 2].tolist())
    n, start, end = len(rows), waits.arrival[rows], waits.end[rows]
    known = (waits.instances.of_call[rows] >= 0) & (waits.wait[rows] > 0)
    late = rows[known]
    arrived = np.clip(start[known] + waits.wait[late], start[known], end[known])
    channels = np.array([signature.channel for signature in calls.signatures] or [0])
    used, stream = np.unique(channels[calls.signature[rows]], return_inverse=True)
    which = np.concatenate([stream, stream[known], stream[known]]).astype(np.int32)
    texts = output.texts
    names = [_call_text(texts, signature) for signature in calls.signatures]
    names += [_chain_text(texts, kind, None) for kind in (WAIT, TRANSFER)]
    parts = (len(names) - 2, len(names) - 1)
    look = np.concatenate(
        [calls.signature[rows], *(np.full(len(late), part) for part in parts)]
    ).astype(np.int32)
    numbers = {**_of_instance(run, rows), "wait (ns)": np.where(known, waits.wait[rows], -1)}
    numbers = {
        name: np.append(values, np.full(2 * len(late), -1)) for name, values in numbers.items()
    }
    flow, offsets, ends = _flows(run, rows)

    def fields(order: Int32) -> Fields:
        result = Fields(len(order))
        result.add_texts(take(look, order), names)
        _add_numbers(result, texts, numbers, order)
        result.add_fixed(FLOW, take(np.append(flow, np.full(2 * len(late), -1)), order))
        counts = np.append(np.diff(offsets), np.zeros(2 * len(late), np.int64))[order]
        place = np.flatnonzero(order < n)
        own = [ends[offsets[i] : offsets[i + 1]] for i in order[place].tolist()]
        result.add_fixed(
            FLOW_END, np.concatenate([ends[:0], *own]), offsets=np.append(0, np.cumsum(counts))
        )
        return result

    starts = np.concatenate([start, start[known], arrived])
    until = np.concatenate([end, arrived, np.maximum(end[known], arrived)])
    streams = [(f"communication {number}", process) for number in used.tolist()]
    _add(output, streams, (starts, until, which), fields)


def _flows(run: RunData, rows: Int64) -> tuple[Int64, Int64, Int64]:
    """Flows from calls that wait to the call of the last rank.

    Returns
    -------
    tuple of int64 arrays
        [calls] the flow that starts at each call, -1 for none; [calls + 1] and [flows] those that
        end at each: `ends[offsets[i]:offsets[i + 1]]`.
    """
    waits = run.waits
    of_call = waits.instances.of_call
    waiting = (of_call >= 0) & (waits.wait > 0)
    flow = np.where(waiting[rows], rows + 1, -1)
    instance = of_call[rows]
    rank = waits.instances.calls.rank[rows]
    is_last = (instance >= 0) & ~waiting[rows] & (np.append(waits.last, -1)[instance] == rank)
    order, bounds = waits.members
    ends, counts = [np.empty(0, np.int64)], np.zeros(len(rows), np.int64)
    for i in np.flatnonzero(is_last).tolist():
        members = order[bounds[instance[i]] : bounds[instance[i] + 1]]
        own = members[waiting[members]] + 1
        ends.append(own)
        counts[i] = len(own)
    return flow, np.append(0, np.cumsum(counts)), np.concatenate(ends)


def _call_text(texts: Interned, signature: CallSignature) -> bytes:
    """Name, category and arguments of a call."""
    size = "" if signature.size < 0 else quantity(float(signature.size), "bytes")
    name = " ".join(filter(None, (signature.kind, size, signature.dtype)))
    told: dict[str, Any] = {
        "group": signature.group,
        "ranks": signature.n_ranks if signature.n_ranks >= 0 else None,
        "bytes": signature.size if signature.size >= 0 else None,
        "op": signature.op,
        "layer": signature.layer,
        "line": signature.line,
    }
    return b"".join(
        [
            proto.number(10, texts.event(name)),
            proto.number(3, texts.category("collective")),
            *(texts.annotation(key, value) for key, value in told.items()
              if value not in (None, "")),
        ]
    )  # fmt: skip


def _by_file(run: RunData) -> list[list[int]]:
    """The ranks of each file, in order."""
    result: dict[str, list[int]] = {}
    for rank, record in enumerate(run.records):
        result.setdefault(record.path, []).append(rank)
    return list(result.values())


def _add_kernels(
    run: RunData,
    ranks: list[int],
    output: TraceOutput,
    processes: list[int],
    where: Where | None,
    opened: Opened,
) -> None:
    """Add the GPU work, ranges and API calls of the ranks of a file.

    Their clock is moved by its offset in the middle of the recording.
    """
    work, rows = read(opened(run.records[ranks[0]].path), where)
    profile, of = work.profile, dict[int, int]()
    for rank in reversed(ranks):
        of[run.records[rank].pid] = processes[rank]
    output.root = of[-1] = processes[ranks[0]]
    pids = {*profile.api.threads.pid.tolist(), *work.places[:, 0].tolist()}
    pids |= {*profile.ranges.threads.pid.tolist(), *profile.memory_events.pid.tolist()}
    for pid in sorted(pids - {*of}):
        name = profile.about.processes.get(pid) or "process"
        of[pid] = output.tracks.add(f"{name} {pid}", output.root)
    origin, output.origin = output.origin, output.origin - _shift(run, ranks[0])
    add_work(work, rows, output, of)
    output.origin = origin


def _opened(path: str) -> ProfileData:
    return load(ProfileData, path, copies=True)
