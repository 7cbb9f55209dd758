"""Data that some ranks lack: files, kernels, steps, attribution depths, operators, layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from fastprof.model.columns import Ints, Values
from fastprof.model.table import Table, texts
from fastprof.ranks.all_ranks import AllRanks, Rank
from fastprof.ranks.work import Failure

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
            "file": texts([row[1] for row in rows]),
            "lacks": texts([row[2] for row in rows]),
            "detail": texts([row[3] for row in rows]),
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
