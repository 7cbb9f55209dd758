"""A directory of the records of ranks, a NumPy file per trace: unchanged ones are read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from fastprof.model.arrays import Bools
from fastprof.ranks.files import TraceFile
from fastprof.ranks.kept import Directory
from fastprof.ranks.run.record import (
    ARRIVED,
    KINDS_OF_LABELS,
    WAITED,
    Calls,
    CallSignature,
    Chain,
    Label,
    RankRecord,
    RankSteps,
    RecordedFile,
    Syncs,
)

_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "calls": ("start", "end", "signature", "seq"),
    "chain": (
        "time", "kind", "call", "blocked", "lead", "slack", "rest", "offsets", "label", "ns",
        "count",
    ),
    "syncs": ("event", "ns", "after"),
    "steps": ("number", "start", "end", "is_counted"),
}  # fmt: skip
_MOST_RANKS: Final = 1 << 31
_OF_EVENTS: Final = ("time", "kind", "call", "blocked", "lead", "slack", "rest")
_FACTS: Final = (
    "format", "rank", "world_size", "place", "n_places", "pid", "device", "gpu", "n_gpus",
    "warnings",
)  # fmt: skip
_TYPES: Final = {
    "signature": np.int32, "seq": np.int32, "kind": np.uint8, "call": np.int32, "lead": np.int32,
    "slack": np.int32, "rest": np.int32, "label": np.int32, "count": np.int32,
    "is_counted": np.bool_,
}  # fmt: skip


class RecordStore(Directory[RecordedFile]):
    """A directory of records, see `Directory`."""

    SUFFIX = ".ranks.npz"

    def read(self, stored: Path) -> RecordedFile:
        """As in Directory."""
        return _read(stored)

    def write(self, result: RecordedFile, file: BinaryIO) -> None:
        """As in Directory."""
        arrays = {
            f"{number}/{part}/{name}": getattr(getattr(record, part), name)
            for number, record in enumerate(result.ranks)
            for part, names in _PARTS.items()
            for name in names
        }
        facts = json.dumps(_facts(result)).encode()
        np.savez(file, facts=np.frombuffer(facts, np.uint8), **arrays)

    def with_source(self, result: RecordedFile, source: TraceFile) -> RecordedFile:
        """As in Directory."""
        ranks = [replace(record, source=source) for record in result.ranks]
        return replace(result, source=source, ranks=ranks)


def _facts(file: RecordedFile) -> dict[str, Any]:
    return {
        "source": asdict(file.source),
        "options": file.options,
        "version": file.version,
        "seconds": file.seconds,
        "ranks": [
            {
                **{name: getattr(record, name) for name in _FACTS},
                "begin": record.chain.begin,
                "steps": record.steps.source,
                "signatures": record.signatures,
                "labels": record.labels,
            }
            for record in file.ranks
        ],
    }


def _read(path: Path) -> RecordedFile:
    """Read records. Invalid files raise one of DAMAGED."""
    import zipfile  # as np.load does
    import zlib

    try:
        return _of_arrays(path)
    except (zipfile.BadZipFile, zlib.error, EOFError, MemoryError, RuntimeError) as error:
        raise ValueError("is cut, or no archive of arrays") from error


def _of_arrays(path: Path) -> RecordedFile:
    with np.load(path, allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        source = TraceFile(**facts["source"])
        ranks = [
            _record(source, number, of_rank, arrays)
            for number, of_rank in enumerate(facts["ranks"])
        ]
    for record in ranks:
        _check(record)
    made = facts["options"], float(facts["seconds"]), facts["version"]
    return RecordedFile(source, ranks, *made)


def _record(
    source: TraceFile, number: int, facts: Mapping[str, Any], arrays: Mapping[str, Any]
) -> RankRecord:
    parts: dict[str, dict[str, Any]] = {
        part: {
            name: _array(arrays[f"{number}/{part}/{name}"], _TYPES.get(name, np.int64))
            for name in names
        }
        for part, names in _PARTS.items()
    }
    signatures = [
        CallSignature._make([*row[:4], tuple(row[4]), *row[5:]]) for row in facts["signatures"]
    ]
    return RankRecord(
        source=source,
        calls=Calls(**parts["calls"]),
        signatures=signatures,
        chain=Chain(begin=int(facts["begin"]), **parts["chain"]),
        syncs=Syncs(**parts["syncs"]),
        labels=[Label(*row) for row in facts["labels"]],
        steps=RankSteps(source=facts["steps"], **parts["steps"]),
        **{name: facts[name] for name in _FACTS},
    )


def _array(values: np.ndarray, wanted: type[np.generic]) -> np.ndarray:
    """A column; ValueError if it is none of that type."""
    if values.ndim != 1 or not np.can_cast(values.dtype, wanted, "same_kind"):
        raise ValueError(f"expected one dimension of {wanted}")
    return np.ascontiguousarray(values, wanted)


def _check(record: RankRecord) -> None:
    """Raise ValueError if some value is impossible."""
    calls, chain, steps = record.calls, record.chain, record.steps
    n_entries = len(chain.label)
    is_possible = (
        len({len(getattr(calls, name)) for name in _PARTS["calls"]}) == 1
        and len({len(getattr(chain, name)) for name in _OF_EVENTS}) == 1
        and len({len(array) for array in (chain.label, chain.ns, chain.count)}) == 1
        and len({len(getattr(steps, name)) for name in _PARTS["steps"]}) == 1
        and len(chain.offsets) == len(chain) + 1
        and chain.offsets[0] == 0
        and chain.offsets[-1] == n_entries
        and (np.diff(chain.offsets) >= 0).all()
        and (np.diff(chain.time) >= 0).all()
        and (chain.ns >= 0).all()
        and (chain.blocked >= 0).all()
        and (chain.slack >= -1).all()
        and (chain.rest >= 0).all()
        and (chain.lead >= 0).all()
        and _are_syncs(record)
        and _within(calls.signature, len(record.signatures))
        and _within(chain.call[chain.call >= 0], len(calls))
        and _within(chain.label, len(record.labels))
        and _within(chain.kind, 3)
        and _is_in_order(record)
        and _are_facts(record)
        and all(type(label.kind) is int for label in record.labels)
        and all(0 <= label.kind < len(KINDS_OF_LABELS) for label in record.labels)
        and all(isinstance(text, str) for label in record.labels for text in label[1:])
        and all(_is_signature(signature) for signature in record.signatures)
    )
    if not is_possible:
        raise ValueError("a value is impossible")


def _are_syncs(record: RankRecord) -> bool:
    """Whether each wait of the host is before the launch of an event."""
    syncs = record.syncs
    return bool(
        len(syncs.ns) == len(syncs.after) == len(syncs)
        and (np.diff(syncs.event) > 0).all()
        and _within(syncs.event, len(record.chain))
        and (record.chain.slack[syncs.event] >= 0).all()
        and (syncs.ns >= 0).all()
        and (syncs.after >= 0).all()
    )


def _is_in_order(record: RankRecord) -> bool:
    """Whether times ascend, and each call arrives once."""
    calls, chain, steps = record.calls, record.chain, record.steps
    arrived = chain.call[chain.kind == ARRIVED]
    return bool(
        (np.diff(calls.start) >= 0).all()
        and (np.diff(steps.start) >= 0).all()
        and (steps.end >= steps.start).all()
        and (chain.time[:1] >= chain.begin).all()
        and (chain.call[chain.kind == WAITED] >= 0).all()
        and np.array_equal(np.sort(arrived), np.arange(len(calls)))
    )


def _are_facts(record: RankRecord) -> bool:
    texts = (record.format, record.gpu, record.steps.source, *record.warnings)
    numbers = (record.place, record.n_places, record.pid, record.device, record.n_gpus)
    known = [number for number in (record.rank, record.world_size) if number is not None]
    return (
        all(isinstance(text, str) for text in texts)
        and all(_is_number(number) for number in (*numbers, *known))
        and all(0 <= number < _MOST_RANKS for number in known)
    )


def _within(values: np.ndarray, n: int) -> bool:
    result: Bools = (values >= 0) & (values < n)
    return bool(result.all())


def _is_signature(signature: CallSignature) -> bool:
    texts = (signature.kind, signature.dtype, signature.group, *signature[-3:])
    numbers = (
        signature.size, signature.n_ranks, signature.channel, signature.source, signature.target,
        *signature.members,
    )  # fmt: skip
    return all(isinstance(text, str) for text in texts) and all(map(_is_number, numbers))


def _is_number(value: object) -> bool:
    return type(value) is int and -1 <= value < 1 << 62
