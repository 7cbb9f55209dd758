"""Baselines as fastprof stored them before it had SQLite stores: a Parquet file and a JSON file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fastprof.analysis.diff.side import KEYS
from fastprof.analysis.diff.store import Baseline
from fastprof.analysis.idle.causes import CAUSES


def write(baseline: Baseline, directory: Path, pairs: Sequence[Any] = (), **changes: Any) -> Path:
    """Write the files of a directory; `changes` replace properties, None removes one."""
    import pyarrow
    from pyarrow import parquet

    directory.mkdir(parents=True, exist_ok=True)
    table = _table(pyarrow, baseline, changes)
    parquet.write_table(table, directory / "baseline.parquet", compression="zstd")
    if pairs:
        (directory / "predictions.json").write_text(json.dumps(pairs))
    return directory


def _table(arrow: Any, baseline: Baseline, changes: dict[str, Any]) -> Any:
    side = baseline.side
    order = np.argsort(side.group, kind="stable")
    ends = np.cumsum(np.bincount(side.group, minlength=side.n_groups))
    offsets = arrow.array(np.concatenate([[0], ends]), arrow.int64())
    columns = {name: _texts(arrow, side.texts(name)) for name in KEYS}
    columns |= {name: arrow.array(getattr(side, name)) for name in ("calls", "kernels", "gpu_ns")}
    for name in ("window", "own_ns"):
        pieces = arrow.array(getattr(side, name)[order])
        columns[name] = arrow.LargeListArray.from_arrays(offsets, pieces)
    properties = {
        "version": "0.1.0",
        "schema": 1,
        "source": baseline.steps,
        "where": baseline.where,
        "trim": baseline.trim,
        "names": side.names,
        "gpus": side.gpus,
        "steps": side.steps,
        "has_steps": side.has_steps,
        "notes": side.notes,
        "windows": {name: values.tolist() for name, values in side.windows.items()},
        "causes": CAUSES,
        "idle": side.idle.tolist(),
        "plan": side.plan().data(),
        **changes,
    }
    known = {name: value for name, value in properties.items() if value is not None}
    known.setdefault("source", None)
    return arrow.table(columns).replace_schema_metadata({b"fastprof_baseline": json.dumps(known)})


def _texts(arrow: Any, texts: Sequence[Any]) -> Any:
    valid = [None if text is None else str(text) for text in texts]
    return arrow.array(valid, arrow.string()).dictionary_encode()
