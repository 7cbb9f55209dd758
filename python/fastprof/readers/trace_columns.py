"""Conversions shared by the SQLite readers: table columns to those of a Recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _nest, _pools
from fastprof._core._take import take
from fastprof.model.arrays import unique
from fastprof.model.trace import Kernels, Ranges
from fastprof.readers.sqlite.database import Database, Field, TableColumns


def joined(tables: Sequence[TableColumns], by: str = "start") -> TableColumns:
    """Concatenate tables. Missing columns are filled with -1.

    by : a column that all tables have
    """
    like = {key: column for table in tables for key, column in table.items()}
    filled = [table for table in tables if len(table[by])] or list(tables[:1])
    parts = [
        {
            key: table[key] if key in table else np.full(len(table[by]), -1, column.dtype)
            for key, column in like.items()
        }
        for table in filled
    ]
    if len(parts) == 1:
        return parts[0]
    return {key: np.concatenate([part[key] for part in parts]) for key in like}


def launches_in_order(columns: TableColumns, kernels: Kernels) -> TableColumns:
    """Sort columns of API calls by time and update the indices of kernels, in place."""
    order = _nest.order(columns["start"], columns["start"])
    if order is None:
        return columns
    place = np.full(len(order) + 1, -1, np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    kernels.launch = place[kernels.launch]
    if kernels.origin is not None:
        kernels.origin = place[kernels.origin]
    return {name: column[order] for name, column in columns.items()}


def complete_processes(kernels: Kernels, n_processes: int) -> None:
    """Set the process of GPU work whose launch is not recorded.

    It is the only process of the file, or the only one with other work on the same GPU, or of
    several there, on the same context, or stream. It stays -1 if several use that stream, or none
    the GPU.
    """
    if n_processes == 1:
        kernels.process[:] = 0
        return
    configs = kernels.configs
    columns = [configs.device, configs.context, configs.stream]
    for n in range(1, len(columns) + 1):
        unknown = kernels.process < 0
        if unknown.all() or not unknown.any():
            return
        group = take(_pools.alike(columns[:n])[0], kernels.config)
        first, last = np.full((2, len(configs)), -1, np.int32)
        own, process = group[~unknown], kernels.process[~unknown]
        order = np.argsort(process, kind="stable")
        last[own[order]] = process[order]
        first[own[order[::-1]]] = process[order[::-1]]
        only = np.where(first == last, first, np.int32(-1))
        kernels.process[unknown] = only[group[unknown]]


_OF_RANGES: Final = ("start", "end", "globalTid", "text", "text_seq", "text_op_id")


def ranges_in_order(columns: TableColumns, rows: npt.NDArray[Any] | slice) -> Ranges:
    """Some rows in the order of `Ranges`. Columns are removed from `columns` to free their memory
    early."""
    return Ranges(*in_order(columns, rows, _OF_RANGES))


def in_order(
    columns: TableColumns, rows: npt.NDArray[Any] | slice, names: Sequence[str]
) -> list[npt.NDArray[Any]]:
    """Some columns of these rows, in the order of `Ranges`; the first two are start and end."""
    kept = [columns.pop(name)[rows] for name in names]
    # Ranges that end before they start enclose nothing.
    np.maximum(kept[0], kept[1], out=kept[1])
    order = _nest.order(kept[0], kept[1])
    if order is not None:
        for i, column in enumerate(kept):
            kept[i] = column[order]
    return kept


def read_strings(
    database: Database,
    table: str,
    fields: Callable[[Any, _pools.Names], list[Field]],
    wanted: _pools.Keys,
    kernels: Kernels,
    remedy: str,
) -> tuple[list[str | None], list[str]]:
    """The texts of all string ids in use, and warnings."""
    texts = _pools.Names()
    columns = database.scan(
        table, fields(wanted, texts), keep=_column.KnownKeys(wanted), capacity=len(wanted)
    )
    keys, places = columns.values()
    strings: list[str | None] = [None] * len(wanted)
    text_of = texts.texts()
    for key, text in zip(keys.tolist(), places.tolist(), strict=True):
        strings[key] = text_of[text] if text >= 0 else None
    known = np.array([text is not None for text in strings] + [True])
    name = kernels.configs.name
    lost = unique(name[~known[name]])
    warnings = []
    if len(lost):
        ids = ", ".join(str(wanted.values()[index]) for index in lost[:3])
        warnings.append(
            f"{database.name}: {len(lost)} kernel names are not in {table} "
            f"(ids {ids}); they print as na. {remedy[0].upper()}{remedy[1:]}"
        )
    return strings, warnings


def text(value: object) -> str | None:
    """The text of a bytes cell; invalid UTF-8 becomes U+FFFD."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None
