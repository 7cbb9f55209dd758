"""`fastprof.open_ranks`: the traces of all ranks of a run to Ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastprof._version import __version__
from fastprof.api.batch import Done, check_workers, gather
from fastprof.model.table import SCHEMA, Table
from fastprof.ranks.files import find
from fastprof.ranks.run.changes import STRAGGLERS
from fastprof.ranks.run.result import RanksError, RunData
from fastprof.ranks.run.store import RecordStore
from fastprof.ranks.run.text import lines_of, tables_of
from fastprof.ranks.summary import Summary
from fastprof.ranks.work import Options

if TYPE_CHECKING:
    from fastprof.model.page import Page

__all__ = ["Ranks", "RanksError", "open_ranks"]


class Ranks(RunData):
    """The ranks of a run: who waits for whom, why, and what it would save.

    Tables are mappings of name to numpy array with `rows`, `to_pandas`, `to_arrow`, `write_csv` and
    `text`: `ranks`, `groups`, `causes`, `waiting()`, `steps()`, `calls()`, `stages()`,
    `unmatched()`, `what_if(changes)`. Times are ns, on aligned clocks.
    """

    def lines(self) -> list[str]:
        """The first screen in words: the answer, what a rank does, what is missing."""
        return lines_of(self)

    def tables(self) -> list[tuple[str, Table]]:
        """The tables of the first screen, with titles."""
        return tables_of(self)

    def facts(self, changes: Sequence[str] = ()) -> dict[str, Any]:
        """The first screen as values for JSON; times in ns, unknown is None."""
        tables = {
            "ranks": self.ranks,
            "groups": self.groups,
            "causes": self.causes,
            "stages": self.stages(),
            "what_if": self.what_if(changes or [STRAGGLERS]),
        }
        step = self.step_ns
        return {
            "fastprof": __version__,
            "schema": SCHEMA,
            "files": len(self.files) + len(self.failures),
            "failures": [failure.error for failure in self.failures],
            "warnings": [text for record in self.records for text in record.warnings],
            "missing": self.missing,
            "step_ns": None if np.isnan(step) else step,
            "answer": self.lines()[0],
            **{name: [*map(dict, table.rows())] for name, table in tables.items()},
        }

    def write_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write all ranks on one clock for Perfetto, compressed if the name ends with .gz."""
        from fastprof.exports.perfetto.run import write_run_perfetto

        write_run_perfetto(self, path)

    def report(self) -> Page:
        """The HTML page of the run, which notebooks show: `run.report().save("run.html")`."""
        from fastprof.page.run import page_of_run

        return page_of_run(self)


def open_ranks(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    jobs: int | None = None,
    memory: int | None = None,
    client: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Done], None] = False,
    pattern: str | None = None,
    graph_capture: Sequence[str | os.PathLike[str]] = (),
    ops: Sequence[str | os.PathLike[str]] = (),
    steps: str | None = None,
    clock: str = "estimated",
) -> Ranks:
    """Read the traces of all ranks of a run.

    Worker processes read the files, and return for each rank its collectives and what it does
    between them. Files that cannot be read are listed in `Ranks.failures`.

    Parameters
    ----------
    paths : path, or paths
        Traces, one or several ranks each, and directories to search recursively.
    jobs, memory, client, progress, pattern, graph_capture, ops
        As for `fastprof.batch`.
    store : path, optional
        Directory of results as NumPy files. Those of unchanged files are used again.
    steps : str, optional
        What marks the steps of each rank, see `Profile.find_steps`.
    clock : str
        `estimated`: clocks of ranks are aligned by the ends of collectives; `recorded`: as in the
        files.

    Returns
    -------
    Ranks
        Independent of `jobs` and of the order of processing.

    Raises
    ------
    BadInputError
        No paths, a directory without traces, or a missing cost or capture file.
    RanksError
        The files are not those of the ranks of one run.
    BatchError
        Invalid combination of `jobs`, `memory` and `client`.
    """
    check_workers(jobs, memory, client)
    costs, captures = (
        tuple(map(os.path.abspath, map(os.fsdecode, members))) for members in (ops, graph_capture)
    )
    options = Options(ops=costs, graph_capture=captures, ranks=True, steps=steps)
    text = options.text()  # reads the costs and captures: their errors are those of the run
    keep = None if store is None else RecordStore(store, text)
    results = gather(find(paths, pattern), options, keep, jobs, memory, client, progress)
    return Ranks([result for result in results if not isinstance(result, Summary)], clock)
