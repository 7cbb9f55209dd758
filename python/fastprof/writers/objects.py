"""Write columns as one object per line, `{key: value, ...}`, in Python or JSON notation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from fastprof._core._rows import RowWriter
from fastprof.model.columns import Column, SeqMarkers
from fastprof.writers import write_threads
from fastprof.writers.cells import Notation, add_cell


def python_text(value: Any) -> str:
    """Format a value as a Python literal; tuples of strings as lists, as in PyProf."""
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def python_escape(text: str) -> str:
    """Escape a string for use between single quotes, as repr does."""
    return repr('"' + text)[2:-1]


def json_text(value: Any) -> str:
    """Format a value as JSON; unpaired surrogates, which UTF-8 cannot encode, are escaped."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def json_escape(text: str) -> str:
    """Escape a string for use between double quotes in JSON."""
    return json_text(text)[1:-1]


_BRACKETS = (b"[", b", ", b"]")

JSON = Notation("null", "[]", _BRACKETS, _BRACKETS, json_text, '"', json_escape)
PYTHON = replace(
    JSON,
    none="None",
    triple=(b"(", b", ", b")"),
    text=python_text,
    quote="'",
    escape=python_escape,
)


def write_objects(
    columns: Mapping[str, Column | SeqMarkers], notation: Notation, file: BinaryIO
) -> None:
    """Write one object per row, with keys in the order of `columns`, which must not be empty."""
    text: Callable[[Any], str] = notation.text
    writer = RowWriter(len(next(iter(columns.values()))), b"}\n")
    before = "{"
    for key, column in columns.items():
        add_cell(writer, f"{before}{text(key)}: ", column, notation)
        before = ", "
    write_threads.write_on_threads(writer, file)
