"""`fastprof.batch`: many traces, one per rank, to a Batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from fastprof._system.classes import dataclass
from fastprof._system.threads import usable_cores
from fastprof.errors import FastprofError
from fastprof.ranks.files import find
from fastprof.ranks.local import run_local, run_on_cluster
from fastprof.ranks.result import BatchData
from fastprof.ranks.run.record import RecordedFile
from fastprof.ranks.run.store import RecordStore
from fastprof.ranks.store import Store
from fastprof.ranks.summary import Summary
from fastprof.ranks.work import Options, Result

if TYPE_CHECKING:
    from fastprof.model.page import Page

# Python with numpy and fastprof takes 0.1 GB.
LEAST_MEMORY: Final = 1 << 28


class BatchError(FastprofError, ValueError):
    """Invalid arguments of `batch`."""


@dataclass(frozen=True)
class Done:
    """Progress: a file was processed.

    Parameters
    ----------
    result : its summary or failure
    stored : whether the result is from the store
    n, total : number of processed files, including this one, and of all files
    problem : what is wrong with the stored result of an earlier run, or ""
    """

    result: Result
    stored: bool
    n: int
    total: int
    problem: str = ""


class Batch(BatchData):
    """The results of all files of a run.

    Tables are mappings of name to numpy array with `rows`, `to_pandas`, `to_arrow`, `write_csv` and
    `text`. Times are ns. Tables do not depend on the order in which files were read.

    Attributes
    ----------
    summaries : list of Summary
    failures : list of Failure
        Files that could not be read.
    """

    def report(self) -> Page:
        """The HTML page of the ranks, which notebooks show: `batch.report().save("ranks.html")`."""
        from fastprof.page.ranks import page_of_ranks

        return page_of_ranks(self)


def batch(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    jobs: int | None = None,
    memory: int | None = None,
    client: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Done], None] = False,
    ops: Sequence[str | os.PathLike[str]] = (),
    copies: bool = True,
    pattern: str | None = None,
    graph_capture: Sequence[str | os.PathLike[str]] = (),
    trim: str | None = None,
) -> Batch:
    """Read many traces and compare their ranks.

    Worker processes read the files and return summaries of about 100 kB each. Files that cannot be
    read are listed in `Batch.failures`; the others are processed.

    Parameters
    ----------
    paths : path, or paths
        Traces, and directories to search recursively. Duplicates are ignored.
    jobs : int, optional
        Number of local worker processes. Default: the number of usable cores.
    memory : int, optional
        Memory limit per worker in bytes (Linux). Files that need more become failures.
    client : distributed.Client, optional
        Run on the workers of this Dask cluster. Workers must see the files under the same paths.
    store : path, optional
        Directory of summaries as Parquet files. Summaries of unchanged files are used again.
    progress : bool or function
        True shows a progress bar on stderr. A function is called with a `Done` per processed file.
    ops : paths
        Python files that register operator costs (`fastprof.op`). Workers do not inherit costs that
        this process has registered.
    copies : bool
        Include memory copies and memsets, as all reports do.
    pattern : str, optional
        Glob pattern of file names in directories: `*.pt.trace.json.gz`.
    graph_capture : paths
        Traces with captures of the CUDA and HIP graphs that all these traces replay, see
        `fastprof.open`.
    trim : str, optional
        Count only this part of each trace, see `Profile.trim`.

    Returns
    -------
    Batch
        Independent of `jobs` and of the order of processing.

    Raises
    ------
    BadInputError
        No paths, a directory without traces, or a missing cost or capture file.
    BatchError
        Invalid combination of `jobs`, `memory` and `client`.
    MissingDependencyError
        `client` without distributed, or `store` without pyarrow.
    """
    check_workers(jobs, memory, client)
    costs, captures = (
        tuple(map(os.path.abspath, map(os.fsdecode, members))) for members in (ops, graph_capture)
    )
    options = Options(copies, costs, captures, trim)
    text = options.text()  # reads the costs and captures: their errors are those of the batch
    keep = None if store is None else Store(store, text)
    rows = find(paths, pattern)
    return Batch(gather(rows, options, keep, jobs, memory, client, progress))


def gather(
    paths: Sequence[str],
    options: Options,
    keep: Store | RecordStore | None,
    jobs: int | None,
    memory: int | None,
    client: Any,
    progress: bool | Callable[[Done], None],
) -> list[Result]:
    """The result of each path, in their order; see `batch`.

    keep : results of earlier runs, and for those of this one
    """
    results: dict[str, Result] = {}
    found = closing(_results(paths, options, keep, jobs, memory, client))
    with _shown(progress) as show, found as done:
        for result, stored in done:
            results[result.path] = result
            problem = "" if keep is None else keep.problem(result.path)
            show(Done(result, stored, len(results), len(paths), problem))
    return [results[path] for path in paths]


@contextmanager
def _shown(progress: bool | Callable[[Done], None]) -> Iterator[Callable[[Done], None]]:
    """The function to call for each file."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done: None
    else:
        from tqdm import tqdm

        with tqdm(unit=" files") as bar:

            def show(done: Done) -> None:
                bar.total = done.total
                bar.update(done.n - bar.n)

            yield show


def check_workers(jobs: int | None, memory: int | None, client: Any) -> None:
    """Check the workers of `batch` and `open_ranks`.

    Raises
    ------
    BatchError
    """
    if client is not None and (jobs is not None or memory is not None):
        raise BatchError(
            "jobs and memory apply to local processes only; for a cluster, set them when starting "
            "its workers (dask worker --nworkers N --memory-limit 4GB)"
        )
    if jobs is not None and jobs < 1:
        raise BatchError(f"expected 1 or more jobs, found {jobs}")
    if memory is not None and memory < LEAST_MEMORY:
        raise BatchError(
            f"expected memory of {LEAST_MEMORY} bytes (256 MiB) or more, found {memory}: Python "
            "itself takes 0.1 GB"
        )


def _results(
    paths: Sequence[str],
    options: Options,
    store: Store | RecordStore | None,
    jobs: int | None,
    memory: int | None,
    client: Any,
) -> Generator[tuple[Result, bool], None, None]:
    """All results, those from the store first, and whether each is from the store."""
    todo = []
    for path in paths:
        summary = None if store is None else store.find(path)
        if summary is None:
            todo.append(path)
        else:
            yield summary, True
    if not todo:
        return
    if client is not None:
        results = run_on_cluster(client, todo, options)
    else:
        results = run_local(todo, options, jobs or usable_cores(), memory)
    with closing(results):
        for result in results:
            if isinstance(store, RecordStore) and isinstance(result, RecordedFile):
                store.add(result)
            if isinstance(store, Store) and isinstance(result, Summary):
                store.add(result)
            yield result, False
