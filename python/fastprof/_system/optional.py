"""Packages that fastprof can do without: imported when they are needed, or told what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from fastprof.errors import MissingDependencyError

# The extra of pyproject.toml that installs a package.
_EXTRA: Final = {"pandas": "pandas", "pyarrow": "arrow", "distributed": "dask"}


def needed(module: str, what: str) -> Any:
    """The module, for `what`: "DataFrames need".

    Raises
    ------
    MissingDependencyError
        Its package is not installed.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} {package}: pip install 'fastprof[{_EXTRA[package]}]'"
        ) from error
