"""A side of a comparison as a small Parquet file, to compare later captures with.

A row is a group of kernels. All else is JSON in the schema's metadata.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof._system.optional import import_optional
from fastprof._system.output_file import output_file
from fastprof._version import __version__
from fastprof.analysis.diff.plan import PlanData
from fastprof.analysis.diff.side import KEYS, Side, values_of
from fastprof.analysis.idle.causes import CAUSES
from fastprof.errors import DAMAGED, FastprofError

_FILE: Final = "baseline.parquet"
_PAIRS: Final = "predictions.json"
_METADATA: Final = b"fastprof_baseline"
_SCHEMA: Final = 1  # changes with the meaning of any value
_SUMS: Final = ("calls", "kernels", "gpu_ns")
_NUMBERS: Final = ("predicted_ns", "measured_ns")
_TEXTS: Final = ("before", "after", "ids")
_MOST: Final = 1000  # pairs
_OLDER: Final = PlanData((), "the baseline was stored without a plan; store it again with --save")
_NEEDS: Final = "baselines are Parquet files, which need"


class BaselineError(FastprofError):
    """The baseline of a comparison cannot be stored or used; the message gives the reason."""


class Baseline(NamedTuple):
    """A stored side, and how it was measured.

    Parameters
    ----------
    side : the side
    steps : the source of its steps, see `Profile.find_steps`
    where : conditions of its work, see `fastprof.analysis.selection`
    trim : the part of the capture, see `Profile.trim`; None for all
    """

    side: Side
    steps: str | None = None
    where: tuple[str, ...] = ()
    trim: str | None = None


def is_baseline(directory: str | os.PathLike[str]) -> bool:
    """Whether a directory contains a baseline."""
    return (Path(directory) / _FILE).is_file()


def save(baseline: Baseline, directory: str | os.PathLike[str]) -> Path:
    """Store the baseline of a directory, in place of an older one.

    Parameters
    ----------
    directory : created if it does not exist

    Returns
    -------
    Path
        The file.

    Raises
    ------
    BaselineError
        The file cannot be written.
    MissingDependencyError
        pyarrow is not installed.
    """
    parquet = import_optional("pyarrow.parquet", _NEEDS)
    path = Path(directory) / _FILE
    table = _table(import_optional("pyarrow", _NEEDS), baseline)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with output_file(path, is_own=True, sync=True) as file:
            parquet.write_table(table, file, compression="zstd")
    except OSError as error:
        raise BaselineError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def load(directory: str | os.PathLike[str]) -> Baseline:
    """The baseline of a directory.

    Raises
    ------
    BaselineError
        There is none, or it is damaged or of another version.
    MissingDependencyError
        pyarrow is not installed.
    """
    arrow = import_optional("pyarrow", _NEEDS)
    parquet = import_optional("pyarrow.parquet", _NEEDS)
    path = Path(directory) / _FILE
    if not path.is_file():
        raise BaselineError(
            f"{directory}: contains no baseline; store one with "
            "fastprof diff --baseline DIR --save CAPTURE"
        )
    try:
        table = parquet.read_table(path)
        properties = json.loads((table.schema.metadata or {})[_METADATA])
        if properties["schema"] == _SCHEMA and properties["causes"] == list(CAUSES):
            _check(properties)
            where = tuple(properties["where"])
            side, trim = _side(table, properties), properties.get("trim")
            return Baseline(side, properties["source"], where, trim)
        text = str(properties["version"])
    except (*DAMAGED, arrow.ArrowException) as error:
        raise BaselineError(
            f"{path}: is damaged or not a baseline; store it again with --save"
        ) from error
    raise BaselineError(
        f"{path}: was stored by fastprof {text}, which this fastprof {__version__} cannot "
        "compare with; store it again with --save"
    )


def earlier(directory: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What plans predicted and what was measured in earlier comparisons, the latest last.

    Returns
    -------
    list of dict
        `before` and `after`, lists of names; `ids` of findings; `predicted_ns`, `measured_ns`.

    Raises
    ------
    BaselineError
        The file is damaged.
    """
    path = Path(directory) / _PAIRS
    if not path.is_file():
        return []
    try:
        pairs = json.loads(path.read_text("utf-8"))
        for pair in pairs:
            if not all(isinstance(text, str) for name in _TEXTS for text in pair[name]):
                raise TypeError("expected lists of texts")
        return [{**pair, **{name: int(pair[name]) for name in _NUMBERS}} for pair in pairs]
    except DAMAGED as error:
        raise BaselineError(f"{path}: is damaged; remove it") from error


def remember(directory: str | os.PathLike[str], pair: dict[str, Any]) -> None:
    """Keep a pair as in `earlier`, in place of that of the same captures.

    Raises
    ------
    BaselineError
        The file cannot be written, or is damaged.
    """
    path = Path(directory) / _PAIRS
    same = [pair[name] for name in ("before", "after")]
    pairs = [
        mapping
        for mapping in earlier(directory)
        if [mapping.get("before"), mapping.get("after")] != same
    ]
    try:
        with output_file(path, is_own=True, sync=True) as file:
            file.write(json.dumps([*pairs, pair][-_MOST:], indent=1).encode())
    except OSError as error:
        raise BaselineError(f"{path}: cannot be written: {error.strerror or error}") from error


def _table(arrow: Any, baseline: Baseline) -> Any:
    side = baseline.side
    order = np.argsort(side.group, kind="stable")
    ends = np.cumsum(np.bincount(side.group, minlength=side.n_groups))
    offsets = arrow.array(np.concatenate([[0], ends]), arrow.int64())
    columns = {name: _texts(arrow, side.texts(name)) for name in KEYS}
    columns |= {name: arrow.array(getattr(side, name)) for name in _SUMS}
    for name in ("window", "own_ns"):
        pieces = arrow.array(getattr(side, name)[order])
        columns[name] = arrow.LargeListArray.from_arrays(offsets, pieces)
    properties = {
        "version": __version__,
        "schema": _SCHEMA,
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
    }
    return arrow.table(columns).replace_schema_metadata({_METADATA: json.dumps(properties)})


def _texts(arrow: Any, texts: list[Any]) -> Any:
    """A text column; invalid UTF-8 becomes a question mark."""
    valid = [
        None if text is None else str(text).encode("utf-8", "replace").decode() for text in texts
    ]
    return arrow.array(valid, arrow.string()).dictionary_encode()


def _check(properties: dict[str, Any]) -> None:
    """Raise ValueError if a value has not the type that `_table` writes."""
    texts = [properties[name] for name in ("gpus", "steps")]
    texts += [text for name in ("names", "notes", "where") for text in properties[name]]
    lists = [properties[name] for name in ("names", "notes", "where")]
    texts += [text for text in (properties["source"], properties.get("trim")) if text is not None]
    is_valid = all(isinstance(text, str) for text in texts)
    is_valid = is_valid and all(isinstance(each, list) for each in lists)
    if not is_valid or not isinstance(properties["has_steps"], bool):
        raise ValueError("a value has another type")


def _side(table: Any, properties: dict[str, Any]) -> Side:
    """The side of a table. Damaged ones raise various errors, see `load`."""
    lists = {name: table.column(name).combine_chunks() for name in ("window", "own_ns")}
    sizes = np.diff(lists["window"].offsets.to_numpy())
    n_windows = len(properties["windows"]["wall_ns"])
    window, own_ns = (each.flatten().to_numpy() for each in lists.values())
    if len(window) != len(own_ns) or not ((window >= 0) & (window < n_windows)).all():
        raise ValueError("windows do not exist")
    plan = PlanData.from_data(properties["plan"]) if "plan" in properties else _OLDER
    if not all(0 <= row < len(sizes) for claim in plan.claims for row in claim.groups):
        raise ValueError("groups do not exist")
    calls, kernels, gpu_ns = (table.column(name).to_numpy().astype(np.int64) for name in _SUMS)
    return Side(
        tuple(properties["names"]),
        properties["gpus"],
        properties["steps"],
        properties["has_steps"],
        {name: np.array(each, np.int64) for name, each in properties["windows"].items()},
        np.array(properties["idle"], np.int64).reshape(n_windows, len(CAUSES)),
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
