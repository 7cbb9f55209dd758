"""Paths to results on the workers of an existing Dask cluster.

Workers read the files under the given paths. Only paths and summaries move over the network. The
scheduler reassigns tasks of workers that died; each result is used once.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Sequence
from typing import Any

from fastprof._system.optional import import_optional
from fastprof._version import __version__
from fastprof.errors import FastprofError
from fastprof.ranks.summary import Summary
from fastprof.ranks.work import Failure, Options, Result, work

_WAIT = "30s"  # for a scheduler to answer


class ClusterError(FastprofError):
    """The cluster cannot be used."""


def connect(address: str) -> Any:
    """A client of the scheduler at an address.

    Raises
    ------
    MissingDependencyError
        `distributed` is not installed.
    ClusterError
        No scheduler answers.
    """
    distributed = _distributed()
    try:
        return distributed.Client(address, timeout=_WAIT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"{address}: no Dask scheduler answers there ({error or type(error).__name__}); "
            "expected an address as `dask scheduler` prints it: tcp://HOST:8786"
        ) from error


def run_on_cluster(
    client: Any, paths: Sequence[str], options: Options
) -> Generator[Result, None, None]:
    """The result of each path, in order of arrival.

    Closing the iterator early cancels the remaining tasks.
    """
    distributed = _distributed()
    if getattr(client, "asynchronous", False):
        raise ClusterError(
            "client is asynchronous; expected a distributed.Client without asynchronous=True"
        )
    run = uuid.uuid4().hex[:12]
    path_of = {f"fastprof-{run}-{i}": path for i, path in enumerate(paths)}
    futures = {
        key: client.submit(work, path, options, key=key, pure=False)
        for key, path in path_of.items()
    }
    try:
        for future in distributed.as_completed(list(futures.values()), loop=client.loop):
            if futures.pop(future.key, None) is None:
                continue  # duplicate result
            result = _result(future, path_of[future.key])
            future.release()
            yield result
    finally:
        if futures:
            client.cancel(list(futures.values()))


def _result(future: Any, path: str) -> Result:
    try:
        result: Result = future.result()
    except Exception as error:  # Dask could not run the task
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Failure(path, f"{path}: the cluster could not run it: {text}")
    if isinstance(result, Summary) and result.version != __version__:
        return Failure(
            path,
            f"{path}: read by fastprof {result.version} on the worker, expected {__version__}; "
            "install the same version on both",
        )
    return result


def _distributed() -> Any:
    return import_optional("distributed", "a Dask cluster needs")
