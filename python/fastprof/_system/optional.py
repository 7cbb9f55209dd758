"""Optional dependencies: imported on use, with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from fastprof.errors import MissingDependencyError

# The extra in pyproject.toml for each package.
_EXTRA: Final = {
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "arrow",
    "distributed": "dask",
    "matplotlib": "plot",
    **dict.fromkeys(("mcp", "mcp_types", "anyio", "jsonschema", "uvicorn"), "mcp"),
}


def import_optional(module: str, purpose: str) -> Any:
    """Import a module of an optional package.

    purpose : start of the message: "DataFrames need"

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} {package}: pip install 'fastprof[{_EXTRA[package]}]'"
        ) from error
