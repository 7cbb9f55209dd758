"""Mutations of the rows and tables of an SQLite file by SQL; the file format stays valid."""

import contextlib
import re
from collections.abc import Callable
from typing import Any

import apsw

from fuzz.chance import INTEGERS, Chance

_TIMES = re.compile("start|end|timestamp|completed|queued|submitted", re.IGNORECASE)
_IDS = re.compile(r".*(id|name)_?|flags|eventType|copyKind|objectKind|domain", re.IGNORECASE)
_TEXTS = ("value", "text", "name", "jsonText")
_VALUES: list[Any] = [
    *("", "x", "12", "-3.5x", "1e3", "1e30", " 7 ", "0x10", 0.0, 1.5, -2.75, 1e18, 9.3e18, -1e300),
    *(b"", b"\0", b"12", b"\xff\xfe", bytes(12), b"\x01\0\0\0\x02\0\0\0\0\0\0\0", bytes(3000)),
]
_ARGS = "{'name': '', 'type': 'tensor', 'shape': %s, 'dtype': 'float32'}"
_HOSTILE = [
    *(
        b"",
        b"\0",
        b"a\0b",
        b"\xff",
        b"\xed\xa0\x80",
        b"x" * 100_000,
        b"\1x",
        b"\2",
        b"\n\r\t",
        b"'\"\\",
    ),
    *(b"{" * 5000, b"[" * 100_000, b"{'mod': " * 3000, b"(" * 200, b"-" * 100_000, b"{'mod': 1}"),
    *(
        b"layer:",
        b"layer:" * 50,
        b"layer:\xff",
        b"layer:a" + b"," * 5000,
        b"mm, seq = " + b"9" * 40,
    ),
    *(
        b"a, seq = 7, op_id = 9223372036854775807, sizes = [[" + b"9" * 400 + b"]]",
        b", sizes = [" * 3000,
    ),
    *(
        b"mm, seq = 1, sizes = [" + b"[" * 3000 + b"]" * 3001,
        b"mm, sizes = [[-1, 99999999999999999999]]",
    ),
    *(
        b"autograd::engine::evaluate_function: ",
        b"AddmmBackward0, seq = -1",
        b"CheckpointFunctionBackward",
    ),
    *(
        b"{'traceMarker': [" + b"'a'," * 3000 + b"]}",
        b"{'traceMarker': 5}",
        b"{'traceMarker': [b'\\xff']}",
    ),
    *(
        b"{'mod': 'a', 'op': 'b', 'args': " + each
        for each in (b"5}", b"[5]}", b"None}", b"[{}]}", b"'")
    ),
    *(
        f"{{'mod': 'torch', 'op': '{op}', 'args': [{', '.join([_ARGS % shape] * n)}]}}".encode()
        for op in (
            "mm",
            "conv2d",
            "linear",
            "einsum",
            "cat",
            "scaled_dot_product_attention",
            "lstm",
        )
        for shape in ("(-1, 0)", "(10**9,)", "(4611686018427387904, 8)", "()", "5", "(1,)" * 1)
        for n in (0, 1, 3)
    ),
]


class _File:
    """An in-memory file without the constraints of its tables."""

    def __init__(self, content: bytes, chance: Chance) -> None:
        self.chance = chance
        self.connection = apsw.Connection(":memory:")
        self.connection.deserialize("main", content)
        self.run = self.connection.execute
        self.run("PRAGMA journal_mode = MEMORY")
        self.run("PRAGMA writable_schema = ON")
        self._sql = dict(self.run("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        for what in (" NOT NULL", " STRICT"):
            self.run(f"UPDATE sqlite_schema SET sql = replace(sql, '{what}', '')")
        self.run("PRAGMA writable_schema = RESET")
        self.columns: dict[str, list[str]] = {}
        for name in self._sql:
            if not name.startswith("sqlite_") and self.run(f'SELECT 1 FROM "{name}"').fetchone():
                told = self.run(f'PRAGMA table_info("{name}")')
                self.columns[name] = [column for _, column, *_ in told]

    def content(self) -> bytes:
        """The file; half of the time its tables declare constraints again that rows violate."""
        if self.chance.random() < 0.5:
            self.run("PRAGMA writable_schema = ON")
            for name, sql in self._sql.items():
                self.run("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))
        return self.connection.serialize("main")

    def column(self, pattern: re.Pattern[str] | None = None) -> tuple[str, str]:
        result = [
            (table, column)
            for table, columns in self.columns.items()
            for column in columns
            if pattern is None or pattern.fullmatch(column)
        ]
        return result[self.chance.place(len(result))] if result else ("sqlite_schema", "rootpage")

    def some(self, table: str) -> str:
        """A condition that selects some rows, in id order."""
        ids = [number for (number,) in self.run(f'SELECT rowid FROM "{table}"')]
        if not ids or self.chance.random() < 0.2:
            return "1"
        chosen = ids[self.chance.stretch(len(ids), len(ids))]
        if self.chance.random() < 0.5:
            chosen = self.chance.sample(ids, min(len(ids), 3))
        return f"rowid IN ({', '.join(map(str, chosen))})"

    def set(self, table: str, column: str, value: str, *values: Any) -> None:
        """Set a column of some rows unless a unique index forbids it."""
        sql = f'UPDATE OR REPLACE "{table}" SET "{column}" = {value} WHERE {self.some(table)}'
        with contextlib.suppress(apsw.Error):
            self.run(sql, values)


def _kind(change: Callable[[_File, Chance], None]) -> Callable[[bytes, Chance], bytes]:
    def mutate(content: bytes, chance: Chance) -> bytes:
        file = _File(content, chance)
        for _ in range(chance.choice([1, 1, 1, 3])):
            change(file, chance)
        return file.content()

    return mutate


def _types(file: _File, chance: Chance) -> None:
    """Replace numbers by texts or blobs, and texts by numbers."""
    value = chance.choice([*_VALUES, chance.choice(INTEGERS)])
    file.set(*file.column(), chance.choice(["?", "?", "CAST(? AS BLOB)", "? || ''"]), value)


def _nulls(file: _File, chance: Chance) -> None:
    file.set(*file.column(), "NULL")


def _extremes(file: _File, chance: Chance) -> None:
    file.set(*file.column(), "?", chance.choice(INTEGERS))


def _times(file: _File, chance: Chance) -> None:
    table, column = file.column(_TIMES)
    by = chance.choice([*INTEGERS, 1, 10, -1000])
    whole = f'"{column}"'
    value = chance.choice(
        ["?1", f"-{whole}", f"max(min({whole} + 1.0 * ?1, 9e18), -9e18)", f"{whole} / 1000",
         f"{whole} + ?1 % 100000", f"CAST(max(min({whole} + 1.0 * ?1, 9e18), -9e18) AS INT)",
         f"{whole} + rowid * 1000", "rowid", "start", '"end"']
    )  # fmt: skip
    file.set(table, column, value, *([by] if "?1" in value else []))


def _ids(file: _File, chance: Chance) -> None:
    """Ids of other rows, of missing rows, all equal, far apart, or cyclic."""
    table, column = file.column(_IDS)
    other = chance.choice(file.columns.get(table, [column]))
    value = chance.choice(
        [f'(SELECT "{column}" FROM "{table}" ORDER BY (rowid * 7919) % 31 LIMIT 1)', f'"{other}"',
         f'"{column}" + 1', f'"{column}" - 1', "?1", "rowid", "rowid * ?1 / 100", "-rowid",
         "rowid + ?1 / 2", f'"{column}" | (rowid << 24)', f'"{column}" | (rowid << 48)',
         "rowid % 3"]
    )  # fmt: skip
    file.set(table, column, value, *([chance.choice(INTEGERS)] if "?1" in value else []))


def _rows(file: _File, chance: Chance) -> None:
    """Delete, duplicate, renumber or reorder rows."""
    table, _ = file.column()
    if table not in file.columns:
        return
    columns = [f'"{column}"' for column in file.columns[table]]
    keys = [column for column in ("id", "_id_") if f'"{column}"' in columns]
    with contextlib.suppress(apsw.Error):
        way = chance.choice(["lost", "all lost", "twice", "many", "moved", "shuffled"])
        if way == "lost":
            file.run(f'DELETE FROM "{table}" WHERE {file.some(table)}')
        elif way == "all lost":
            file.run(f'DELETE FROM "{table}"')
        elif way == "moved":
            new = chance.choice(
                ["-rowid", "rowid + 9223372036854770000", "rowid * 1000", "rowid - 7"]
            )
            file.run(f'UPDATE OR IGNORE "{table}" SET rowid = {new} WHERE {file.some(table)}')
        else:
            plain = ", ".join(column for column in columns if column.strip('"') not in keys)
            n = {"twice": 1, "many": 40}.get(way, 0)
            if way == "shuffled":
                file.run(f'CREATE TEMP TABLE kept AS SELECT {plain} FROM "{table}"')
                file.run(f'DELETE FROM "{table}"')
                file.run(
                    f'INSERT INTO "{table}" ({plain}) SELECT * FROM kept ORDER BY rowid * 7 % 11'
                )
            for _ in range(n):
                copied = f'SELECT {plain} FROM "{table}" ORDER BY rowid LIMIT 20'
                file.run(f'INSERT INTO "{table}" ({plain}) {copied}')


def _texts(file: _File, chance: Chance) -> None:
    table, column = file.column(re.compile("|".join(_TEXTS)))
    text = chance.choice(_HOSTILE)
    value = chance.choice(["CAST(? AS TEXT)"] * 3 + [f'"{column}" || CAST(? AS TEXT)'])
    file.set(table, column, value, text)


def _schema(file: _File, chance: Chance) -> None:
    """Drop, rename or redeclare tables and columns; add views and indexes."""
    table, column = file.column()
    if table not in file.columns:
        return
    other = chance.choice(
        ["x", column.upper(), column.lower(), "start", "end", "é", 'a"b', "rowid"]
    )
    other = other.replace('"', '""')
    type_ = chance.choice(["REAL", "TEXT", "BLOB", "NUMERIC", "", "VARCHAR(5)", "FLOAT INT"])
    default = chance.choice(["", "DEFAULT 7", "DEFAULT 'x'", "DEFAULT 1.5", "DEFAULT (1 + 1)"])
    listed = ", ".join(f'"{name}"' for name in file.columns[table])
    statements = [
        [f'DROP TABLE "{table}"'],
        [f'ALTER TABLE "{table}" DROP COLUMN "{column}"'],
        [f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{other}"'],
        [f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
         f'ALTER TABLE "{table}" ADD COLUMN "{column}" {type_} {default}'],
        [f'ALTER TABLE "{table}" ADD COLUMN g AS (1) VIRTUAL'],
        [f'ALTER TABLE "{table}" RENAME TO t', f'CREATE VIEW "{table}" AS SELECT * FROM t'],
        [f'CREATE INDEX i1 ON "{table}" ("{column}")'],
        [f'CREATE INDEX i2 ON "{table}" ({listed})'],
        [f'ALTER TABLE "{table}" RENAME TO t',
         f'CREATE TABLE "{table}" (_key PRIMARY KEY, {listed}) WITHOUT ROWID',
         f'INSERT INTO "{table}" SELECT rowid, * FROM t'],
        [f'ALTER TABLE "{table}" RENAME TO t', f'CREATE TABLE "{table}" ({listed})',
         f'INSERT INTO "{table}" SELECT * FROM t'],
        [f'ALTER TABLE "{table}" RENAME TO "{table.lower()}_"',
         f'ALTER TABLE "{table.lower()}_" RENAME TO "{table.lower()}"'],
        ["PRAGMA writable_schema = ON",
         f"UPDATE sqlite_schema SET rootpage = {chance.randrange(40)} WHERE name = '{table}'"],
        ["PRAGMA writable_schema = ON",
         f"UPDATE sqlite_schema SET sql = replace(sql, 'INT', '{type_}') WHERE name = '{table}'"],
    ]  # fmt: skip
    for sql in chance.choice(statements):
        with contextlib.suppress(apsw.Error):
            file.run(sql)
    file.columns.pop(table)


KINDS = {
    "types": _kind(_types),
    "nulls": _kind(_nulls),
    "extremes": _kind(_extremes),
    "times": _kind(_times),
    "ids": _kind(_ids),
    "rows": _kind(_rows),
    "texts": _kind(_texts),
    "schema": _kind(_schema),
}
