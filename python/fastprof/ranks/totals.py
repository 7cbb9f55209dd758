"""Totals over all ranks by op, layer, ..., with their spread over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.errors import UnknownColumnError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.table import Floats, Table
from fastprof.ranks.all_ranks import AllRanks, table_of
from fastprof.ranks.summary import KEYS

BY: Final = ("op", "layer", "class", "dir")


def totals(all_ranks: AllRanks, by: Sequence[str]) -> Table:
    """Aggregate over all ranks and compare ranks.

    Parameters
    ----------
    by : mod, op, layer, dir, class: one or several

    Returns
    -------
    Table
        One row per combination of keys, in order of descending time, with the columns of `by` and

        - ranks: number of ranks with such kernels; mean, min, max are over these ranks
        - kernels, time: all ranks; share: of the total time
        - mean, min, max: ns per rank; slowest: the first rank with the maximum
        - skew: max / mean
        - flops, bytes: all ranks, of kernels with known values; flops_kernels, bytes_kernels:
          number of these kernels

    Raises
    ------
    UnknownColumnError
        `by` contains an invalid or duplicate name.
    """
    check(by)
    keys = [all_ranks.keys[name] for name in by]
    place, first = _combined(keys, len(all_ranks.rank))
    n, n_ranks = len(first), max(1, len(all_ranks.ranks))
    cell, of_group = np.unique(place * n_ranks + all_ranks.rank, return_inverse=True)
    row, rank = cell // n_ranks, cell % n_ranks
    time = np.zeros(len(cell), np.int64)
    np.add.at(time, of_group, all_ranks.sums["time"])
    starts = np.searchsorted(row, np.arange(n))
    counts = np.bincount(row, minlength=n)
    total = _reduced(np.add, time, starts)
    largest, least = _reduced(np.maximum, time, starts), _reduced(np.minimum, time, starts)
    slowest = _first_of(time == largest[row], row, rank, n)
    numbers = np.array([each.number for each in all_ranks.ranks] or [-1], np.int64)
    mean = total / np.maximum(counts, 1)
    whole = int(all_ranks.sums["time"].sum())
    columns = {name: Values(key.ids[first], key.values) for name, key in zip(by, keys, strict=True)}
    table: dict[str, Ints | Values | Floats] = {
        **columns,
        "ranks": Ints(counts),
        "kernels": Ints(_added(all_ranks.sums["kernels"], place, n)),
        "time": Ints(total),
        "share": Floats(total / whole if whole else np.full(n, np.nan)),
        "mean": Ints(np.rint(mean).astype(np.int64)),
        "min": Ints(least),
        "max": Ints(largest),
        "slowest": Ints(numbers[slowest]),
        "skew": Floats(np.divide(largest, mean, out=np.full(n, np.nan), where=mean > 0)),
    }
    for name in ("flops", "bytes"):
        known = _added(all_ranks.sums[f"{name}_kernels"], place, n)
        values = np.bincount(place, np.maximum(all_ranks.sums[name], 0), minlength=n)
        table[name] = Floats(np.where(known > 0, values, np.nan))
        table[f"{name}_kernels"] = Ints(known)
    order = _order(total, [columns[name] for name in by])
    return table_of(table).take(order)


def check(by: Sequence[str]) -> None:
    """Check grouping keys.

    Raises
    ------
    UnknownColumnError
    """
    valid = [name for name in KEYS if name != "collective"]
    for name in by:
        if name not in valid:
            raise UnknownColumnError(
                f"unknown column {name!r} to group by; valid columns: {', '.join(valid)}"
            )
    if not by or len(set(by)) < len(by):
        raise UnknownColumnError(
            f"expected one or several of {', '.join(valid)}, each once; found {','.join(by)!r}"
        )


def groups_of_ranks(all_ranks: AllRanks) -> Table:
    """All groups of all ranks in long form: one row per rank and group."""
    numbers = np.array([each.number for each in all_ranks.ranks] or [-1], np.int64)
    paths = [each.summary.path for each in all_ranks.ranks]
    table = table_of(
        {
            "rank": Ints(numbers[all_ranks.rank]),
            "file": Values(all_ranks.rank, paths),
            **all_ranks.keys,
            **{name: Ints(values) for name, values in all_ranks.sums.items()},
        }
    )
    order = np.argsort(all_ranks.rank, kind="stable")
    return table.take(order)


def _combined(keys: Sequence[Values], n: int) -> tuple[Int64, npt.NDArray[np.intp]]:
    """The combination of each group, and the first group of each combination."""
    place = np.zeros(n, np.int64)
    for key in keys:
        both = place * (len(key.values) + 1) + key.ids + 1
        _, first, place = np.unique(both, return_index=True, return_inverse=True)
    return place.astype(np.int64), first


def _reduced(function: np.ufunc, values: Int64, starts: npt.NDArray[np.intp]) -> Int64:
    return function.reduceat(values, starts) if len(starts) else np.empty(0, np.int64)


def _added(values: Int64, place: Int64, n: int) -> Int64:
    total = np.zeros(n, np.int64)
    np.add.at(total, place, values)
    return total


def _first_of(
    wanted: npt.NDArray[np.bool_], row: Int64, value: Int64, n: int
) -> npt.NDArray[np.intp]:
    """For each row, the value of its first wanted cell."""
    cells = np.flatnonzero(wanted)[::-1]
    found = np.zeros(n, np.intp)
    found[row[cells]] = value[cells]
    return found


def _order(total: Int64, keys: Sequence[Values]) -> npt.NDArray[np.intp]:
    """Descending time; ties in order of their texts."""
    ranked = []
    for key in keys:
        rank = np.empty(len(key.values) + 1, np.int64)
        rank[sorted(range(len(key.values)), key=key.values.__getitem__)] = np.arange(
            len(key.values)
        )
        rank[-1] = len(key.values)
        ranked.append(rank[key.ids])
    return np.lexsort((*ranked[::-1], -total))
