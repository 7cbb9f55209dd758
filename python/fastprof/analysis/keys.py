"""Grouping keys of reports: for each kernel, the id of a distinct text or number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._system.regex import regex
from fastprof.analysis.grouping import Columns, OwnKeys, numbers
from fastprof.analysis.key_names import ALIASES, ANNOTATED, DEPTH, KEY_NAMES
from fastprof.errors import ReportError
from fastprof.model.columns import Column, Ints, RepeatedInts, SharedValues, Values, unknown
from fastprof.model.heading import unknown_name
from fastprof.model.numbers import without_numbers


def key_of(profile: Columns, name: str) -> Values:
    """The values of a key; unknown for all kernels if the file does not record it.

    Raises
    ------
    ReportError
        There is no such key; the message names the nearest.
    LookupError
        The rows are cells whose kernels differ in the key.
    """
    depth = DEPTH.match(name)
    if depth is not None:
        n = int(depth[1])
        return _layer(profile, lambda names: names[:n])
    field = ANNOTATED.match(name)
    if field is not None:
        return _annotation(profile, field[1])
    text = ALIASES.get(name, name)
    if text not in _MAKERS:
        raise ReportError(unknown_name("key", name, [*KEY_NAMES, *ALIASES]))
    own = profile.own_key(text) if isinstance(profile, OwnKeys) else None
    return _MAKERS[text](profile) if own is None else own


def _column(name: str) -> Callable[[Columns], Values]:
    """A key with the values of a column."""

    def make(profile: Columns) -> Values:
        if name not in profile.names:
            return unknown(len(profile))
        return _as_values(profile.column(name))

    return make


def _as_values(column: Column) -> Values:
    if isinstance(column, Values):
        return column
    if isinstance(column, RepeatedInts):
        of_distinct = _as_values(Ints(column.distinct, column.none))
        return SharedValues(column.ids, of_distinct.ids, of_distinct.values)
    numbers, none = np.ascontiguousarray(column.values), getattr(column, "none", -1)
    ids, first = alike([numbers])
    values = numbers[first].tolist()
    if none not in values:
        return Values(ids, values)
    place = values.index(none)
    id_of = np.arange(len(values), dtype=np.int32)
    id_of[place + 1 :] -= 1
    id_of[place] = -1
    return SharedValues(ids, id_of, values[:place] + values[place + 1 :])


def _layer(profile: Columns, part: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Values:
    layers = _column("layer")(profile)
    return layers.mapped(lambda names: ":".join(part(names)) or None)


def _annotation(profile: Columns, field: str | None = None) -> Values:
    """The annotations of nodes of CUDA graphs, or a field of theirs; only traces have them."""
    if "start" not in profile.names:
        return unknown(len(profile))
    notes = _as_values(profile.column("annotation"))
    return notes if field is None else notes.mapped(lambda text: json.loads(text).get(field))


def _range(profile: Columns) -> Values:
    """The user's ranges around the call; `step 17` and `step 18` are both `step *`."""
    ranges = _column("ranges")(profile)
    return ranges.mapped(lambda names: ":".join(map(without_numbers, names)) or None)


_FRAME: Final = regex(r"(?P<file>.+?):\d+(?: (?P<function>.*))?\Z", re.DOTALL)


def _of_line(part: str) -> Callable[[Columns], Values]:
    """The file or the function of a source line."""

    def of(line: str) -> str | None:
        result = _FRAME.match(line)
        if result is None:
            return None
        if part == "file" or not result["function"]:
            return result["file"] if part == "file" else None
        return f"{result['function']} ({result['file']})"

    return lambda profile: _column("line")(profile).mapped(of)


def _phase(profile: Columns) -> Values:
    """The column `phase`; all copies and memsets are `copy`."""
    phases = _column("phase")(profile)
    kinds = _column("kind")(profile)
    is_copy = kinds.fits(lambda kind: kind in ("memcpy", "memset"))
    names = [*phases.values, "copy"]
    ids = np.where(is_copy, len(names) - 1, phases.ids)
    return Values(ids.astype(np.int32), names).mapped(lambda name: _PHASES.get(name, name))


_PHASES: Final = {"data": "copy"}
# The types at the end of `params`, or within T=[...],['float32'] and [2,3]fp32.
_TYPE: Final = regex(
    r"\b(?:b?fp?\d+(?:_e\dm\d\w*)?|bf16|tf32|int\d+|uint\d+|bool|c(?:fp)?\d+|fp8\w*|float\d\w*"
    r"|bfloat16|complex\d+)\b"
)


def without_types(params: str) -> str:
    """Params as a recorder writes them that does not record types."""
    return _TYPE.sub("na", params)


def _dtype(profile: Columns) -> Values:
    """The types of a call's tensors, as its params spell them; each once."""

    def of(params: str) -> str | None:
        types = dict.fromkeys(_TYPE.findall(params))
        floating = [type_ for type_ in types if not re.match("u?int|bool", type_)]
        return "+".join(floating or types) or None

    return _column("params")(profile).mapped(of)


def _of_trace(name: str) -> Callable[[Columns], Values]:
    """A key of the kernels of traces; CPU events and dict lines have none."""
    return lambda profile: (
        _as_values(profile.column(name)) if "start" in profile.names else unknown(len(profile))
    )


def _memory(profile: Columns) -> Values:
    """The memory of copies and memsets, `device` only if there is no other."""

    def other(text: str) -> str:
        return " -> ".join(part for part in text.split(" -> ") if part != "device") or "device"

    return _column("copy_memory")(profile).mapped(other)


_SIZE_CLASSES: Final = (
    (4_000, "< 4 kB"),
    (64_000, "4-64 kB"),
    (1_000_000, "64 kB-1 MB"),
    (16_000_000, "1-16 MB"),
    (256_000_000, "16-256 MB"),
)


def _size_class(profile: Columns) -> Values:
    """Classes of the bytes of copies and memsets."""
    if "copied" not in profile.names:
        return unknown(len(profile))
    limits = np.array([limit for limit, _ in _SIZE_CLASSES])
    names = [name for _, name in _SIZE_CLASSES]
    copied = numbers(profile, "copied")
    place = np.searchsorted(limits, copied, "right").astype(np.int32)
    return Values(np.where(copied < 0, np.int32(-1), place), [*names, ">= 256 MB"])


def _work(profile: Columns) -> Values:
    """The operator; the kernel and its kind where it is unknown: `nvjet_tst_64x8 (gemm)`."""
    op, kernel, kind = (key_of(profile, name) for name in ("op", "kernel", "kind"))
    pairs, first = alike([kind.ids, kernel.ids])
    names = [_kernel(kernel.at(row) or "", kind.at(row) or "other") for row in first.tolist()]
    ids = np.where(op.ids >= 0, op.ids, len(op.values) + pairs)
    works = Values(ids.astype(np.int32), [*op.values, *names])
    return works.mapped(lambda name: name)  # kernels that differ only in what is cut are one


# The tile of Tensile's kernels, of which the beginnings are alike; the direction of copies.
_TELLING: Final = regex(
    r"(Cijk)_.*?_(MT\d+x\d+x\d+)|\[?(?:CUDA_)?(mem\w+?)_(\w+?)_?\]?\Z", re.IGNORECASE
)


def _kernel(name: str, kind: str) -> str:
    """A kernel without namespaces, so that its beginning tells it apart, and its kind."""
    result = _TELLING.match(name)
    short = name.rsplit("::", 1)[-1] if result is None else " ".join(filter(None, result.groups()))
    return short if kind in short.lower() else f"{short or name} ({kind})"


def _rank(profile: Columns) -> Values:
    distributed, n = profile.about.distributed, len(profile)
    if distributed is None or distributed.rank is None:
        return unknown(n)
    return Values(np.zeros(n, np.int32), [distributed.rank])


def _shape(profile: Columns) -> Values:
    return _column("params")(profile).mapped(lambda text: None if text == "na=na," else text)


_MAKERS: Final[dict[str, Callable[[Columns], Values]]] = {
    "op": _column("op"),
    "work": _work,
    "mod": _column("mod"),
    "kernel": _column("kernel"),
    "name": _column("name"),
    "layer": lambda profile: _layer(profile, lambda names: names),
    "line": _column("line"),
    "library_line": _column("library_line"),
    "function": _of_line("function"),
    "file": _of_line("file"),
    "dir": _column("dir"),
    "shape": _shape,
    "dtype": _dtype,
    "kind": _column("class"),
    "phase": _phase,
    "stream": _column("stream"),
    "device": _column("device"),
    "process": _column("pid"),
    "rank": _rank,
    "step": _column("step"),
    "thread": _column("tid"),
    "range": _range,
    "compute_type": _column("compute_type"),
    "tc": _column("tc"),
    "launch": _column("launch"),
    "direction": _column("copy_direction"),
    "memory": _memory,
    "size": _column("copied"),
    "size_class": _size_class,
    "context": _column("context"),
    "annotation": _annotation,
    "collective": _of_trace("collective"),
    "process_group": _of_trace("process_group"),
    "group_size": _of_trace("group_size"),
    "message_bytes": _of_trace("message_bytes"),
    "message_type": _of_trace("message_type"),
    "stage": _of_trace("stage"),
    "batch": _of_trace("batch"),
    "tokens": _of_trace("tokens"),
    "requests": _of_trace("requests"),
}
