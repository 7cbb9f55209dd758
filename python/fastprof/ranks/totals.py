"""Totals over all ranks by op, layer, ..., with their spread, and data that some ranks lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.errors import UnknownColumnError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.table import Floats, Table, text_column
from fastprof.ranks.all_ranks import AllRanks, Rank, table_of
from fastprof.ranks.summary import KEYS
from fastprof.ranks.work import Failure

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
        - mean, min, max: ns per rank; slowest: the first rank with the maximum, na for
          communication, which takes longest on the ranks that wait
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
    numbers = np.array([rank.number for rank in all_ranks.ranks] or [-1], np.int64)
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
        "slowest": Ints(np.where(_is_waiting(columns), -1, numbers[slowest])),
        "skew": Floats(np.divide(largest, mean, out=np.full(n, np.nan), where=mean > 0)),
    }
    for name in ("flops", "bytes"):
        known = _added(all_ranks.sums[f"{name}_kernels"], place, n)
        values = np.bincount(place, np.maximum(all_ranks.sums[name], 0), minlength=n)
        table[name] = Floats(np.where(known > 0, values, np.nan))
        table[f"{name}_kernels"] = Ints(known)
    order = _order(total, [columns[name] for name in by])
    return table_of(table).take(order)


def _is_waiting(columns: Mapping[str, Values]) -> Bools:
    """[rows] Whether the rows are known to be communication."""
    classes = columns.get("class")
    if classes is None:
        return np.zeros(1, bool)
    return np.array([*(name == "communication" for name in classes.values), False])[classes.ids]


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
    numbers = np.array([rank.number for rank in all_ranks.ranks] or [-1], np.int64)
    paths = [rank.summary.path for rank in all_ranks.ranks]
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
    result = np.zeros(n, np.intp)
    result[row[cells]] = value[cells]
    return result


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


# A rank lacks a value that more than this share of ranks has.
_MOST: Final = 0.5
# Minimum share of the median number of kernels; fewer mean a shorter recording or a crash.
_FEW: Final = 0.9
_LISTED: Final = 8

LackingRow = tuple[int, str | None, str, str]  # rank (-1: none), file, lacks, detail


def lacking(all_ranks: AllRanks, failures: Sequence[Failure], missing: Sequence[int]) -> Table:
    """Compare ranks and list missing data.

    Parameters
    ----------
    failures : files without a summary
    missing : ranks of the run without a file

    Returns
    -------
    Table
        rank, file, lacks and detail, in order of rank. lacks is

        - file: missing or unreadable
        - kernels: none, or fewer than 90 % of the median
        - steps: fewer steps of torch.profiler than the median
        - launch, range, op, shapes, cost, source line: known for no GPU time of this rank, but for
          some of more than half of the ranks
        - class, op, layer: a value that more than half of the ranks with kernels have
        - part of the file: a warning about the file
    """
    rows = [*_of_files(failures, missing), *_of_counts(all_ranks.ranks)]
    rows += _of_depths([rank for rank in all_ranks.ranks if rank.process is not None])
    for name in ("class", "op", "layer"):
        rows += _of_values(all_ranks, name)
    rows += [
        (rank.number, rank.summary.path, "part of the file", warning)
        for rank in all_ranks.ranks
        for warning in rank.summary.warnings
    ]
    rows.sort(key=lambda row: (row[0] < 0, row[0]))  # stable
    return Table(
        {
            "rank": Ints(np.array([row[0] for row in rows], np.int64)),
            "file": text_column([row[1] for row in rows]),
            "lacks": text_column([row[2] for row in rows]),
            "detail": text_column([row[3] for row in rows]),
        }
    )


def _of_files(failures: Sequence[Failure], missing: Sequence[int]) -> Iterator[LackingRow]:
    for failure in failures:
        yield -1, failure.path, "file", failure.error.removeprefix(f"{failure.path}: ")
    if missing:
        listed = ", ".join(map(str, missing[:_LISTED]))
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        yield -1, None, "file", f"no file of rank {listed}{more}"


def _of_counts(ranks: list[Rank]) -> Iterator[LackingRow]:
    kernels = [rank.process.kernels if rank.process else 0 for rank in ranks]
    usual = float(np.median([n for n in kernels if n] or [0]))
    steps = [rank.summary.steps for rank in ranks]
    usual_steps = float(np.median(steps)) if steps else 0.0
    for rank, n in zip(ranks, kernels, strict=True):
        path = rank.summary.path
        if n == 0:
            yield rank.number, path, "kernels", "none"
        elif n < _FEW * usual:
            yield rank.number, path, "kernels", f"{n}, the median of all ranks is {usual:.0f}"
        if n and rank.summary.steps < usual_steps:
            detail = f"{rank.summary.steps}, the median of all ranks is {usual_steps:g}"
            yield rank.number, path, "steps", detail


def _of_depths(ranks: list[Rank]) -> Iterator[LackingRow]:
    depths = list(dict.fromkeys(depth for rank in ranks for depth in rank.summary.coverage))
    for depth in depths:
        without = [rank for rank in ranks if not rank.summary.coverage.get(depth)]
        n = len(ranks) - len(without)
        if n > _MOST * len(ranks):
            for rank in without:
                detail = f"known of no GPU time; {n} ranks have it"
                yield rank.number, rank.summary.path, depth, detail


def _of_values(all_ranks: AllRanks, name: str) -> Iterator[LackingRow]:
    """Values of a key that a rank lacks and more than half of the ranks with kernels have."""
    key: Values = all_ranks.keys[name]
    working = np.array([rank.process is not None for rank in all_ranks.ranks], bool)
    n_values, n_ranks = len(key.values), len(working)
    known = key.ids >= 0
    has = np.zeros((n_values, n_ranks), bool)
    has[key.ids[known], all_ranks.rank[known]] = True
    counts = has.sum(axis=1)
    usual = counts > _MOST * working.sum()
    for value, place in np.argwhere(usual[:, None] & ~has & working).tolist():
        rank = all_ranks.ranks[place]
        detail = f"{key.values[value]}; {counts[value]} ranks have it"
        yield rank.number, rank.summary.path, name, detail
