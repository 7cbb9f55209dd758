"""JSON of tables: one row per line, so that large tables are written by json's C encoder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Encoded", "object_of", "rows_of"]


class Encoded(str):
    """JSON text."""


def object_of(members: Mapping[str, Any]) -> Encoded:
    """An object, one member per line. Members are values, or Encoded."""
    lines = [
        f"{json.dumps(name)}: {value if isinstance(value, Encoded) else json.dumps(value)}"
        for name, value in members.items()
    ]
    return Encoded("{\n" + ",\n".join(lines) + "\n}")


def rows_of(rows: Iterable[dict[str, Any]]) -> Encoded:
    """An array of rows, one per line."""
    lines = ",\n".join(map(json.dumps, rows))
    return Encoded(f"[\n{lines}\n]" if lines else "[]")
