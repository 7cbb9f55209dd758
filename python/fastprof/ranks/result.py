"""BatchData: the results of all files of a run, as tables over ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from fastprof._system.output_file import output_file, protected
from fastprof._system.threads import computed_once
from fastprof.model.columns import Ints
from fastprof.model.table import Floats, Table, text_column
from fastprof.ranks import collectives, totals
from fastprof.ranks import totals as lacking
from fastprof.ranks.all_ranks import SHARES, AllRanks, combine, rank_in_name, table_of
from fastprof.ranks.summary import Summary
from fastprof.ranks.work import Failure, Result

if TYPE_CHECKING:
    import pandas

# Text in `overview` for each rule of `fastprof.ranks.all_ranks`.
_NUMBERED: Final = {
    "recorded": "ranks are as recorded in the files",
    "name": "ranks are from the file names",
    "digits": "ranks are the numbers in which file names differ",
    "order": "ranks are numbered in order of file name",
}


class BatchData:
    """The results of all files of a run; `fastprof.Batch` adds the page.

    Tables are mappings of name to numpy array with `rows`, `to_pandas`, `to_arrow`, `write_csv` and
    `text`. Times are ns. Tables do not depend on the order in which files were read.

    Parameters
    ----------
    results : the summary or failure of each file, in order of name

    Attributes
    ----------
    summaries : list of Summary
    failures : list of Failure
        Files that could not be read.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.summaries = [result for result in results if isinstance(result, Summary)]
        self.failures = [result for result in results if isinstance(result, Failure)]

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} files failed" if self.failures else ""
        return f"<fastprof.Batch of {len(self.all_ranks.ranks)} ranks{failed}>"

    @computed_once
    def all_ranks(self) -> AllRanks:
        """The groups of all ranks as columns."""
        return combine(self.summaries)

    def overview(self) -> str:
        """One line: number of ranks and files, the GPU time of the ranks, who waits for whom."""
        ranks = self.all_ranks.ranks
        files = len(self.summaries) + len(self.failures)
        text = f"{len(ranks)} ranks in {files} files"
        if self.failures:
            text += f", {len(self.failures)} of them unreadable"
        text += f"; {_NUMBERED[self.all_ranks.rule]}"
        times = [(rank.process.time, rank.number) for rank in ranks if rank.process is not None]
        if times:
            least, most = min(times), max(times, key=lambda time: (time[0], -time[1]))
            mean = sum(time for time, _ in times) / len(times)
            text += (
                f". GPU time per rank: mean {mean / 1e6:.3f} ms, min {least[0] / 1e6:.3f} "
                f"(rank {least[1]}), max {most[0] / 1e6:.3f} (rank {most[1]})"
            )
        row = next(iter(self._collectives), None)  # the longest wait is first
        if row is not None and (row["wait"] or 0) > 0:
            text += (
                f". {row['collective']}: rank {row['last']} arrives last in "
                f"{row['last_share']:.0%} of the calls; a rank waits {row['wait'] / 1e6:.3f} ms on "
                "average"
            )
        return text

    @computed_once
    def ranks(self) -> Table:
        """One row per rank, then one per failed file.

        rank; file; pid; devices; kernels; gpu_time; span (from the start of the first to the end of
        the last kernel or copy); busy (the share of it in which any work runs); steps; launch,
        range, op, shapes, cost, source line (the share of the file's GPU time attributed to that
        depth); warnings (their number); seconds (to read the file); error.
        """
        return _ranks(self.all_ranks, self.failures)

    def table(self, by: str | Sequence[str] = totals.BY) -> Table:
        """Time, FLOPs and bytes by any of mod, op, layer, dir, class, and their spread over ranks.

        See `fastprof.ranks.totals.totals` for the columns.

        Raises
        ------
        UnknownColumnError
        """
        return totals.totals(self.all_ranks, [by] if isinstance(by, str) else list(by))

    def collectives(self) -> Table:
        """How long ranks wait for each other, by collective.

        See `fastprof.ranks.collectives.collectives` for the columns and their reliability.
        """
        return self._collectives

    @computed_once
    def _collectives(self) -> Table:
        """Matched once: `overview` names the longest wait."""
        return collectives.collectives(self.all_ranks)

    def lacking(self) -> Table:
        """Data that ranks lack and most others have: rank, file, lacks, detail."""
        return lacking.lacking(self.all_ranks, self.failures, self.missing)

    @property
    def missing(self) -> list[int]:
        """Ranks of the run without a file, if the files record the number of ranks."""
        if self.all_ranks.rule != "recorded":
            return []
        present = {rank.number for rank in self.all_ranks.ranks}
        present |= {
            number
            for failure in self.failures
            if (number := rank_in_name(failure.path)) is not None
        }
        size = max((rank.summary.world_size or 0 for rank in self.all_ranks.ranks), default=0)
        return sorted(set(range(size)) - present)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per rank and group of similar kernels.

        rank, file, mod, op, layer, dir, class, collective; kernels, time, flops, flops_kernels,
        bytes, bytes_kernels.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return totals.groups_of_ranks(self.all_ranks).to_pandas()

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows of `to_pandas` as CSV."""
        text = totals.groups_of_ranks(self.all_ranks).csv()
        with self._output(path) as file:
            file.write(text.encode("utf-8", "replace"))

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows of `to_pandas` as a Parquet file.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        with self._output(path) as file:
            totals.groups_of_ranks(self.all_ranks).write_parquet(file)

    @contextmanager
    def _output(self, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
        """An output file that replaces none of the traces."""
        traces = [summary.path for summary in self.summaries] + [
            failure.path for failure in self.failures
        ]
        with protected(lambda: traces), output_file(path) as file:
            yield file


def _ranks(all_ranks: AllRanks, failures: Sequence[Failure]) -> Table:
    """See Batch.ranks."""
    ranks = all_ranks.ranks
    none = [-1] * len(failures)
    unknown = [np.nan] * len(failures)
    processes = [rank.process for rank in ranks]
    summaries = [rank.summary for rank in ranks]
    spans = [
        None if process is None or process.span is None else process.span for process in processes
    ]
    spans_ns = [-1 if span is None else span[1] - span[0] for span in spans]
    times = [0 if process is None else process.time for process in processes]
    depths = dict.fromkeys(depth for summary in summaries for depth in summary.coverage)
    no_devices = ["-"] * len(failures)
    devices = [
        ",".join(map(str, process.devices)) or "-" if process else "-" for process in processes
    ]

    def numbers(values: Sequence[int | None]) -> Ints:
        return Ints(np.array([-1 if v is None else v for v in [*values, *none]], np.int64))

    def floats(values: Sequence[float]) -> Floats:
        return Floats(np.array([*values, *unknown], np.float64))

    return table_of(
        {
            "rank": numbers([rank.number for rank in ranks]),
            "file": text_column(
                [summary.path for summary in summaries] + [f.path for f in failures]
            ),
            "pid": numbers([None if process is None else process.pid for process in processes]),
            "devices": text_column([*devices, *no_devices]),
            "kernels": numbers(
                [0 if process is None else process.kernels for process in processes]
            ),
            "gpu_time": numbers(times),
            "span": numbers(spans_ns),
            "busy": floats(
                [
                    np.nan if process is None or process.busy is None else process.busy
                    for process in processes
                ]
            ),
            "steps": numbers([summary.steps for summary in summaries]),
            **{
                depth: floats(
                    [
                        summary.coverage.get(depth, 0) / summary.gpu_time
                        if summary.gpu_time
                        else np.nan
                        for summary in summaries
                    ]
                )
                for depth in depths
            },
            "warnings": numbers([len(summary.warnings) for summary in summaries]),
            "seconds": floats([summary.seconds for summary in summaries]),
            "error": text_column([None] * len(ranks) + [failure.error for failure in failures]),
        },
        shares=SHARES | set(depths),
    )
