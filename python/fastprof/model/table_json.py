"""JSON of tables: one row per line, so that large tables are written by json's C encoder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class Encoded:
    """JSON text, in parts. They are joined once, because tables may have a million rows."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return "".join(self.parts)


def object_of(members: Mapping[str, Any]) -> Encoded:
    """An object, one member per line. Members are values, or Encoded."""
    parts = ["{\n"]
    for name, value in members.items():
        parts.append(f"{json.dumps(name)}: ")
        parts += value.parts if isinstance(value, Encoded) else [json.dumps(value)]
        parts.append(",\n")
    return Encoded([*parts[: -1 if members else None], "\n}"])


def rows_of(names: Iterable[str], chunks: Iterable[Sequence[list[Any]]]) -> Encoded:
    """An array of rows, one per line.

    names : the columns
    chunks : the values of each column, for some rows at a time
    """
    cells = ", ".join(json.dumps(name).replace("%", "%%") + ": %s" for name in names)
    line, parts = f"{{{cells}}}", ["[\n"]
    for columns in chunks:
        rows = zip(*map(_encoded, columns), strict=True)
        parts += [",\n".join([line % row for row in rows]), ",\n"]
    return Encoded([*parts[:-1], "\n]"] if len(parts) > 1 else ["[]"])


def _encoded(values: list[Any]) -> list[str]:
    """The JSON of each value. Only lists and objects with several items contain line feeds."""
    cells = json.dumps(values, separators=("\n", ": "))[1:-1].split("\n")
    return cells if len(cells) == len(values) else [json.dumps(value) for value in values]
