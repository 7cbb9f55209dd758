"""Many traces, each of a rank, to a Batch: what `fastprof.batch` is."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fastprof.errors import FastprofError
from fastprof.ranks.cluster import run_on_cluster
from fastprof.ranks.files import find
from fastprof.ranks.local import run_local, usable_cores
from fastprof.ranks.result import Batch
from fastprof.ranks.store import Store
from fastprof.ranks.summary import Summary
from fastprof.ranks.work import Options, Result

__all__ = ["LEAST_MEMORY", "BatchError", "Done", "batch"]

# An interpreter with numpy and fastprof has 0.1 GB before it reads anything.
LEAST_MEMORY: Final = 1 << 28


class BatchError(FastprofError, ValueError):
    """What was asked of a batch cannot be; the text says why."""


@dataclass(frozen=True)
class Done:
    """A file that is done.

    Parameters
    ----------
    result : its summary, or why there is none
    stored : whether it was done before, and comes from the store
    n, total : how many files are done, this one too, and how many there are
    """

    result: Result
    stored: bool
    n: int
    total: int


def batch(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    jobs: int | None = None,
    memory: int | None = None,
    client: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Done], None] = False,
    ops: Sequence[str | os.PathLike[str]] = (),
    copies: bool = False,
    pattern: str | None = None,
    graph_capture: Sequence[str | os.PathLike[str]] = (),
) -> Batch:
    """Read many traces, and compare the ranks they are of.

    Each file is read by another process and comes back as a summary of some 100 kB. A file that
    cannot be read, or whose process dies, is an entry in `Batch.failures` and stops nothing.

    Parameters
    ----------
    paths : path, or paths
        Traces, and directories that are searched for traces with all below them. A file that is
        given twice counts once.
    jobs : int, optional
        How many processes of this machine; as many as cores without it.
    memory : int, optional
        Bytes that each process may have (Linux). A file that needs more is a failure.
    client : distributed.Client, optional
        Do it on the workers of this Dask cluster, which must see the files by the same paths.
    store : path, optional
        A directory that keeps each summary as a Parquet file. What is there already, of a file that
        has not changed, is not done again.
    progress : bool or function
        True shows a bar on stderr; a function is called with a `Done` for each file, as files
        finish.
    ops : paths
        Python files that register costs of your own operators (`fastprof.op`); processes do not
        have what this one has registered.
    copies : bool
        Whether memory copies and memsets count as kernels do.
    pattern : str, optional
        What names in directories match: `*.pt.trace.json.gz`.
    graph_capture : paths
        Traces with the captures of CUDA and HIP graphs that all these traces replay, see
        `fastprof.open`.

    Returns
    -------
    Batch
        It does not depend on `jobs`, or on which process read what.

    Raises
    ------
    BadInputError
        There is nothing to read: no paths, a directory without traces, no such file of costs or
        capture.
    BatchError
        `jobs`, `memory` and `client` do not fit.
    MissingDependencyError
        `client` without distributed, or `store` without pyarrow.
    """
    _check(jobs, memory, client)
    costs, captures = (
        tuple(map(os.path.abspath, map(os.fsdecode, each))) for each in (ops, graph_capture)
    )
    options = Options(copies, costs, captures)
    text = options.text()
    found = find(paths, pattern)
    results: dict[str, Result] = {}
    with _shown(progress) as show:
        keep = None if store is None else Store(store, text)
        with closing(_results(found, options, keep, jobs, memory, client)) as done:
            for result, stored in done:
                results[result.path] = result
                show(Done(result, stored, len(results), len(found)))
    return Batch([results[path] for path in found])


@contextmanager
def _shown(progress: bool | Callable[[Done], None]) -> Iterator[Callable[[Done], None]]:
    """What to call for each file."""
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


def _check(jobs: int | None, memory: int | None, client: Any) -> None:
    if client is not None and (jobs is not None or memory is not None):
        raise BatchError(
            "jobs and memory are of processes of this machine; a cluster has what its workers were "
            "started with (dask worker --nworkers N --memory-limit 4GB)"
        )
    if jobs is not None and jobs < 1:
        raise BatchError(f"{jobs} jobs; expected 1 or more")
    if memory is not None and memory < LEAST_MEMORY:
        raise BatchError(
            f"{memory} bytes of memory are too few; expected {LEAST_MEMORY} (256 MiB) or more: "
            "the interpreter takes 0.1 GB"
        )


def _results(
    paths: list[str],
    options: Options,
    store: Store | None,
    jobs: int | None,
    memory: int | None,
    client: Any,
) -> Generator[tuple[Result, bool], None, None]:
    """Each result once, and whether it comes from the store: these first."""
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
            if store is not None and isinstance(result, Summary):
                store.add(result)
            yield result, False
