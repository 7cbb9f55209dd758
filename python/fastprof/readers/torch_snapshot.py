"""Memory snapshots of torch: the files of `torch.cuda.memory._dump_snapshot`.

They are pickles. Only plain data is read: `_core._plain` refuses all else. Keys and values are
those of `_cuda_memorySnapshot` (torch/csrc/cuda/Module.cpp and memory_snapshot.cpp), of torch 2.0
to 2.13.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _plain
from fastprof._system import memory
from fastprof.errors import BadInputError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Values
from fastprof.model.metadata import Snapshot, SnapshotBlocks, SnapshotEvents, SnapshotSegments

# The first bytes of protocols 2 to 5.
MAGIC: Final = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_OF_BYTE: Final = 5  # bytes of memory per byte of the file, at least
# Bytes of memory: of a block or event, of a frame of a stack; per byte of the file; of any file.
_OF_ENTRY, _OF_FRAME, _MOST_OF_BYTE, _FLOOR = 200, 8, 30, 64 << 20
_LARGEST: Final = 1 << 50  # bytes; more than a GPU has
_SAVE: Final = "save one with torch.cuda.memory._dump_snapshot"


def is_snapshot(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a snapshot; False if it cannot be read."""
    if not os.path.isfile(path):  # a pipe can be read once
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC[0])) in MAGIC
    except OSError:
        return False


def read(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot.

    Raises
    ------
    BadInputError
        It cannot be read, is damaged, is no memory snapshot, or contains more than plain data.
    NotEnoughMemoryError
        It repeats lists so often that they take far more memory than the file.
    """
    name = os.fsdecode(path)
    try:
        memory.require(name, os.path.getsize(path) * _OF_BYTE)
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadInputError(f"{name}: cannot be read: {error.strerror}") from error
    if not data.startswith(MAGIC):
        raise BadInputError(
            f"{name}: expected a memory snapshot of torch, found another format (first bytes "
            f"{data[:16]!r}); {_SAVE}"
        )
    return _snapshot(name, _plain.load(data, name), len(data))


def _snapshot(name: str, root: Any, file_size: int) -> Snapshot:
    if type(root) is list:  # of torch.cuda.memory_snapshot()
        root = {"segments": root}
    if type(root) is not dict or type(root.get("segments")) is not list:
        text = f"keys {', '.join(list(root)[:6])}" if type(root) is dict else type(root).__name__
        raise BadInputError(
            f"{name}: expected a memory snapshot of torch (keys segments, device_traces), found "
            f"{text[:100]!r}; {_SAVE}"
        )
    expansion = memory.Expansion(name, _MOST_OF_BYTE, _FLOOR)
    stacks = _Stacks(expansion, file_size)
    segments = list(_dicts(root["segments"]))
    traces = root.get("device_traces")
    of_device = list(enumerate(traces)) if type(traces) is list else []
    # A list of the file may contain one object many times.
    for entries in (
        *(segment.get("blocks") for segment in segments),
        *(each for _, each in of_device),
    ):
        expansion.add(_OF_ENTRY * len(entries) if type(entries) is list else 0, file_size)
    settings = root.get("allocator_settings")
    return Snapshot(
        name=name,
        segments=SnapshotSegments(
            device=_numbers(segments, "device", default=0).astype(np.int32),
            address=_numbers(segments, "address"),
            size=_sizes(segments, "total_size"),
            stream=_numbers(segments, "stream"),
        ),
        blocks=_blocks(segments, stacks),
        events=_events(of_device, stacks),
        stacks=stacks.distinct,
        settings=settings if type(settings) is dict else {},
    )


def _blocks(segments: list[dict[str, Any]], stacks: _Stacks) -> SnapshotBlocks:
    own = [list(_dicts(segment.get("blocks"))) for segment in segments]
    blocks = [block for members in own for block in members]
    # torch 2.0 keeps the request of a block in a list of past ones, the latest first.
    requests = [_latest_request(block) for block in blocks]
    size = _sizes(blocks, "size")
    requested = _sizes(requests, "requested_size", -1)
    legacy = _sizes(requests, "real_size", -1)
    requested = np.where(requested >= 0, requested, legacy)
    return SnapshotBlocks(
        segment=np.repeat(np.arange(len(own)), _lengths(own)).astype(np.int32),
        address=_addresses(segments, own),
        size=size,
        requested=np.where(requested >= 0, requested, size),
        state=_texts(blocks, "state"),
        stack=stacks.of(requests),
        category=_texts(blocks, "category"),
    )


def _latest_request(block: dict[str, Any]) -> dict[str, Any]:
    history = block.get("history")
    if type(history) is list and history and type(history[0]) is dict:
        return history[0]
    return block


def _addresses(segments: list[dict[str, Any]], own: list[list[dict[str, Any]]]) -> Int64:
    """The address of each block; where it is not recorded, the blocks of a segment adjoin."""
    results = [np.empty(0, np.int64)]
    starts = _numbers(segments, "address", default=0)
    for start, blocks in zip(starts.tolist(), own, strict=True):
        size, address = _sizes(blocks, "size"), _numbers(blocks, "address")
        results.append(np.where(address >= 0, address, start + np.cumsum(size) - size))
    return np.concatenate(results)


def _events(of_device: list[tuple[int, Any]], stacks: _Stacks) -> SnapshotEvents:
    own = [list(_dicts(trace)) for _, trace in of_device]
    events = [event for members in own for event in members]
    device = np.repeat(np.array([number for number, _ in of_device], np.int64), _lengths(own))
    time = _numbers(events, "time_us")
    limit = np.iinfo(np.int64).max // 1000
    return SnapshotEvents(
        device=device.astype(np.int32),
        action=_texts(events, "action"),
        address=_numbers(events, "addr"),
        size=_sizes(events, "size"),
        free=_sizes(events, "device_free", -1),
        time=np.where((time >= 0) & (time <= limit), time * 1000, -1),
        stream=_numbers(events, "stream"),
        stack=stacks.of(events),
        category=_texts(events, "category"),
    )


class _Stacks:
    """The distinct stacks of dicts with `frames`, innermost first in the file."""

    def __init__(self, expansion: memory.Expansion, file_size: int) -> None:
        self._expansion, self._file_size = expansion, file_size
        self.distinct: list[tuple[str, ...]] = []
        self._ids: dict[tuple[str, ...], int] = {}
        # By identity: a snapshot refers to equal frames by one object.
        self._of_list: dict[int, int] = {}
        self._text_of: dict[int, str] = {}

    def of(self, entries: list[dict[str, Any]]) -> npt.NDArray[np.int32]:
        """The stack of each entry, -1 for none."""
        return np.array([self._id(entry.get("frames")) for entry in entries], np.int32)

    def _id(self, frames: Any) -> int:
        if type(frames) is not list or not frames:
            return -1
        result = self._of_list.get(id(frames))
        if result is None:
            self._expansion.add(_OF_FRAME * len(frames), self._file_size)
            stack = tuple(self._text(frame) for frame in reversed(frames))
            result = self._ids.setdefault(stack, len(self._ids))
            if result == len(self.distinct):
                self.distinct.append(stack)
            self._of_list[id(frames)] = result
        return result

    def _text(self, frame: Any) -> str:
        text = self._text_of.get(id(frame))
        if text is None:
            text = self._text_of[id(frame)] = _frame(frame)
            self._expansion.add(len(text), self._file_size)
        return text


def _frame(frame: Any) -> str:
    if type(frame) is not dict:
        return "?"
    file, line, name = (frame.get(key) for key in ("filename", "line", "name"))
    if type(file) is not str or type(name) is not str:
        return "?"
    place = f"{file}:{line}" if type(line) is int and 0 < line < 2**31 else file
    return f"{place} {name}"


def _lengths(lists: Sequence[Sequence[Any]]) -> Int64:
    return np.array([len(members) for members in lists], np.int64)


def _sizes(entries: Iterable[dict[str, Any]], key: str, none: int = 0) -> Int64:
    """Bytes; `none` for other values and impossible ones."""
    size = _numbers(entries, key)
    return np.where((size >= 0) & (size <= _LARGEST), size, none)


def _dicts(values: Any) -> Iterator[dict[str, Any]]:
    yield from (value for value in (values if type(values) is list else ()) if type(value) is dict)


def _numbers(entries: Iterable[dict[str, Any]], key: str, default: int = -1) -> Int64:
    """int64 [entries]; `default` for other values. Values beyond 63 bits are addresses: folded."""
    results = [entry.get(key) for entry in entries]
    known = [value if type(value) is int else default for value in results]
    folded = [
        value if -(2**63) <= value < 2**63 else (value + 2**63) % 2**64 - 2**63 for value in known
    ]
    return np.array(folded, np.int64)


def _texts(entries: Iterable[dict[str, Any]], key: str) -> Values:
    ids: dict[str, int] = {}
    generator = (entry.get(key) for entry in entries)
    numbers = [ids.setdefault(each, len(ids)) if type(each) is str else -1 for each in generator]
    return Values(np.array(numbers, np.int32), list(ids))
