"""Baselines as fastprof stored them before: a Parquet file in a directory, predictions beside it.

A row is a group of kernels. All else is JSON in the schema's metadata. They are only read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from fastprof._system.optional import import_optional
from fastprof._version import __version__
from fastprof.analysis.diff.database import BaselineError
from fastprof.analysis.diff.packing import Baseline, check_header, check_plan, idle_by_cause
from fastprof.analysis.diff.plan import PlanData
from fastprof.analysis.diff.side import KEYS, Side, values_of
from fastprof.analysis.idle.causes import CAUSES
from fastprof.errors import DAMAGED

FILE: Final = "baseline.parquet"
PAIRS: Final = "predictions.json"
_METADATA: Final = b"fastprof_baseline"
_SCHEMA: Final = 1
_SUMS: Final = ("calls", "kernels", "gpu_ns")
_NUMBERS: Final = ("predicted_ns", "measured_ns")
_TEXTS: Final = ("before", "after", "ids")
_OLDER: Final = PlanData((), "the baseline was stored without a plan; store it again with --save")
_NEEDS: Final = "baselines of earlier versions are Parquet files, which need"


def load(directory: Path) -> tuple[Baseline, str]:
    """The baseline of a directory, and the version of fastprof that stored it.

    Raises
    ------
    BaselineError
        It is damaged or of another version.
    MissingDependencyError
        pyarrow is not installed.
    """
    arrow = import_optional("pyarrow", _NEEDS)
    parquet = import_optional("pyarrow.parquet", _NEEDS)
    path = directory / FILE
    try:
        table = parquet.read_table(path)
        properties = json.loads((table.schema.metadata or {})[_METADATA])
        text = str(properties["version"])
        if properties["schema"] == _SCHEMA and {*properties["causes"]} <= {*CAUSES}:
            check_header(properties)
            where = tuple(properties["where"])
            side, trim = _side(table, properties), properties.get("trim")
            return Baseline(side, properties["source"], where, trim), text
    except (*DAMAGED, arrow.ArrowException) as error:
        raise BaselineError(
            f"{path}: is damaged or not a baseline; remove it and store it again with --save"
        ) from error
    raise BaselineError(
        f"{path}: was stored by fastprof {text}, which this fastprof {__version__} cannot "
        "compare with; remove it and store it again with --save"
    )


def pairs(directory: Path) -> list[dict[str, Any]]:
    """The pairs of a directory, as `store.earlier` returns them; a BaselineError if damaged."""
    path = directory / PAIRS
    if not path.is_file():
        return []
    try:
        stored = json.loads(path.read_text("utf-8"))
        for pair in stored:
            if not all(isinstance(text, str) for name in _TEXTS for text in pair[name]):
                raise TypeError("expected lists of texts")
        return [{**pair, **{name: int(pair[name]) for name in _NUMBERS}} for pair in stored]
    except DAMAGED as error:
        raise BaselineError(f"{path}: is damaged; remove it") from error


def _side(table: Any, properties: dict[str, Any]) -> Side:
    """The side of a table. Damaged ones raise various errors, see `load`."""
    lists = {name: table.column(name).combine_chunks() for name in ("window", "own_ns")}
    sizes = np.diff(lists["window"].offsets.to_numpy())
    n_windows = len(properties["windows"]["wall_ns"])
    window, own_ns = (each.flatten().to_numpy() for each in lists.values())
    if len(window) != len(own_ns) or not ((window >= 0) & (window < n_windows)).all():
        raise ValueError("windows do not exist")
    plan = PlanData.from_data(properties["plan"]) if "plan" in properties else _OLDER
    check_plan(plan, len(sizes))
    calls, kernels, gpu_ns = (table.column(name).to_numpy().astype(np.int64) for name in _SUMS)
    return Side(
        tuple(properties["names"]),
        properties["gpus"],
        properties["steps"],
        properties["has_steps"],
        {name: np.array(each, np.int64) for name, each in properties["windows"].items()},
        idle_by_cause(np.array(properties["idle"], np.int64).reshape(-1), properties["causes"]),
        {name: values_of(table.column(name).to_pylist()) for name in KEYS},
        calls,
        kernels,
        gpu_ns,
        np.repeat(np.arange(len(sizes)), sizes).astype(np.int32),
        window.astype(np.int32),
        own_ns.astype(np.int64),
        tuple(properties["notes"]),
        lambda: plan,
    )
