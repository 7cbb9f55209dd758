"""A side of a comparison as bytes: a header in JSON and arrays, compressed. Data only, no code."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.diff.measure import LAUNCHING
from fastprof.analysis.diff.plan import PlanData
from fastprof.analysis.diff.side import KEYS, Side, values_of
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.steps.windows import HOST_TIMES, TIMES
from fastprof.model.arrays import Int64

SCHEMA: Final = 1  # changes with the meaning of any value
_MOST: Final = 256 << 20  # bytes without compression
_INT64: Final = np.dtype("<i8")
_SUMS: Final = ("calls", "kernels", "gpu_ns")
_PIECES: Final = ("group", "window", "own_ns")
_WINDOWS: Final = frozenset(
    {"step", "pid", "device", "rank", "wall_ns", *TIMES, *HOST_TIMES, *LAUNCHING}
)


class OtherSchemaError(ValueError):
    """The side was packed by a version of fastprof that gives its values another meaning."""


class Baseline(NamedTuple):
    """A stored side, and how it was measured.

    Parameters
    ----------
    side : the side
    steps : the source of its steps, see `Profile.find_steps`
    where : conditions of its work, see `fastprof.analysis.selection`
    trim : the part of the capture, see `Profile.trim`; None for all
    """

    side: Side
    steps: str | None = None
    where: tuple[str, ...] = ()
    trim: str | None = None


def clean(text: str) -> str:
    """Valid UTF-8: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def pack(baseline: Baseline) -> bytes:
    """The bytes of a baseline.

    Raises
    ------
    ValueError
        It is too large.
    """
    side = baseline.side
    arrays: dict[str, Any] = {f"window.{name}": value for name, value in side.windows.items()}
    arrays["idle"] = side.idle.reshape(-1)
    arrays |= {name: getattr(side, name) for name in (*_SUMS, *_PIECES)}
    keys = {name: values_of([_text(text) for text in side.texts(name)]) for name in KEYS}
    arrays |= {f"key.{name}": key.ids for name, key in keys.items()}
    header = {
        "schema": SCHEMA,
        "source": baseline.steps,
        "where": baseline.where,
        "trim": baseline.trim,
        "names": side.names,
        "gpus": side.gpus,
        "steps": side.steps,
        "has_steps": side.has_steps,
        "notes": side.notes,
        "causes": CAUSES,
        "plan": side.plan().data(),
        "values": {name: key.values for name, key in keys.items()},
        "arrays": {name: len(value) for name, value in arrays.items()},
    }
    text = json.dumps(header).encode("ascii")
    parts = [len(text).to_bytes(4, "little"), text]
    parts += [np.ascontiguousarray(array, _INT64).tobytes() for array in arrays.values()]
    size = sum(map(len, parts))
    if size > _MOST:
        raise ValueError(f"it takes {size >> 20} MiB, more than {_MOST >> 20} MiB")
    return zlib.compress(b"".join(parts), 6)


def unpack(data: bytes) -> Baseline:
    """The baseline of some bytes.

    Raises
    ------
    OtherSchemaError
        Another version of fastprof made them.
    ValueError, KeyError, TypeError, ...
        They are damaged; see `fastprof.errors.DAMAGED`.
    """
    header, arrays = _parts(_inflated(data))
    if header["schema"] != SCHEMA or not {*header["causes"]} <= {*CAUSES}:
        raise OtherSchemaError("the meaning of values has changed")
    check_header(header)
    windows = {
        name.removeprefix("window."): value
        for name, value in arrays.items()
        if name.startswith("window.")
    }
    if not windows.keys() >= _WINDOWS:
        raise ValueError("times of windows are missing")
    side = _side(header, arrays, windows)
    return Baseline(side, header["source"], tuple(header["where"]), header["trim"])


def _inflated(data: bytes) -> bytes:
    """The bytes without compression, at most `_MOST`."""
    inflating = zlib.decompressobj()
    try:
        result = inflating.decompress(data, _MOST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflating.eof:
        raise ValueError("is cut, or too large")
    return result


def _parts(data: bytes) -> tuple[dict[str, Any], dict[str, Int64]]:
    """The header, and int64 arrays [n] by name."""
    end = 4 + int.from_bytes(data[:4], "little")
    header = json.loads(data[4:end])
    lengths: Mapping[str, int] = header["arrays"]
    if not all(isinstance(n, int) and n >= 0 for n in lengths.values()):
        raise ValueError("lengths are not numbers")
    values = np.frombuffer(data, _INT64, sum(lengths.values()), end).astype(np.int64)
    bounds = np.cumsum([0, *lengths.values()]).tolist()
    pairs = zip(lengths, bounds, bounds[1:], strict=False)
    return header, {name: values[begin:end] for name, begin, end in pairs}


def check_header(header: Mapping[str, Any]) -> None:
    """Raise ValueError if a value has not the type that `pack` writes."""
    texts = [header[name] for name in ("gpus", "steps")]
    lists = [header[name] for name in ("names", "notes", "where")]
    if not all(isinstance(each, list) for each in lists):
        raise ValueError("a value is no list")
    texts += [text for each in lists for text in each]
    texts += [text for text in (header["source"], header.get("trim")) if text is not None]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a value is no text")
    if not isinstance(header["has_steps"], bool):
        raise ValueError("a value has another type")


def _side(
    header: Mapping[str, Any], arrays: Mapping[str, Int64], windows: Mapping[str, Int64]
) -> Side:
    n_windows, n_groups = len(windows["wall_ns"]), len(arrays["calls"])
    idle = idle_by_cause(arrays["idle"], header["causes"])
    sizes = {len(value) for value in windows.values()} | {len(idle)}
    if n_windows == 0 or sizes != {n_windows}:
        raise ValueError("windows have several lengths, or there are none")
    if {len(arrays[name]) for name in _SUMS} != {n_groups}:
        raise ValueError("groups have several lengths")
    if len({len(arrays[name]) for name in _PIECES}) != 1:
        raise ValueError("pieces have several lengths")
    plan = PlanData.from_data(header["plan"])
    check_plan(plan, n_groups)
    return Side(
        names=tuple(header["names"]),
        gpus=header["gpus"],
        steps=header["steps"],
        has_steps=header["has_steps"],
        windows=windows,
        idle=idle,
        keys={name: values_of(_key(header, arrays, name, n_groups)) for name in KEYS},
        calls=arrays["calls"],
        kernels=arrays["kernels"],
        gpu_ns=arrays["gpu_ns"],
        group=_within(arrays["group"], n_groups).astype(np.int32),
        window=_within(arrays["window"], n_windows).astype(np.int32),
        own_ns=arrays["own_ns"],
        notes=tuple(header["notes"]),
        plan=lambda: plan,
    )


def idle_by_cause(stored: Int64, causes: Sequence[str]) -> Int64:
    """int64 [windows, CAUSES], from [windows * causes] of a version that knew fewer causes."""
    result = np.zeros((len(stored) // len(causes), len(CAUSES)), np.int64)
    result[:, [CAUSES.index(cause) for cause in causes]] = stored.reshape(-1, len(causes))
    return result


def check_plan(plan: PlanData, n_groups: int) -> None:
    """Raise ValueError if a plan is about groups that do not exist."""
    if not all(0 <= row < n_groups for claim in plan.claims for row in claim.groups):
        raise ValueError("groups do not exist")


def _key(
    header: Mapping[str, Any], arrays: Mapping[str, Int64], name: str, n_groups: int
) -> list[str | None]:
    values, ids = header["values"][name], arrays[f"key.{name}"]
    if len(ids) != n_groups or not all(isinstance(value, str) for value in values):
        raise ValueError("a key has other values")
    places = _within(ids + 1, len(values) + 1) - 1
    return [None if i < 0 else values[i] for i in places.tolist()]


def _within(places: Int64, n: int) -> Int64:
    """Places from 0 to n - 1."""
    if not ((places >= 0) & (places < n)).all():
        raise ValueError("places do not exist")
    return places


def _text(value: Any) -> str | None:
    return None if value is None else clean(str(value))
