"""Random SQLite files with all features of tables, and the same files damaged."""

import contextlib
import ctypes
import random
import sqlite3
from pathlib import Path
from typing import Any

import apsw

PAGE_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
EDGES = [2**bits + around for bits in (0, 7, 8, 15, 23, 31, 47, 53, 62) for around in (-1, 0, 1)]
INTEGERS = [0, 1, *EDGES, *(-edge for edge in EDGES), 2**63 - 1, -(2**63)]
REALS = [0.0, -0.0, 1.5, -2.75, 3.0, 1e15, 1e18, 9.2e18, 9.3e18, -9.3e18, 1e300, -1e300, 5e-324]
REALS += [float("inf"), float("-inf"), float(2**53), 9223372036854774784.0, float(2**63)]
TEXTS = ["", "a", "a\0b", "\0", "é", "12", "-3.5x", "1e3", "aten::mm, seq = 7, op_id = 9", "\1x"]
TEXTS += ["aten::add, seq = 8, op_id = 2, sizes = [[2, 3], []]"]
NOT_UTF_8 = [b"\xff", b"a\xc3", b"\xed\xa0\x80"]
TYPES = ["INTEGER", "INT", "BIGINT", "TEXT", "BLOB", "", "NUMERIC", "VARCHAR(5)"]
REAL_TYPES = ["REAL", "DOUBLE", "FLOAT"]
# Features that require SQLite, of files and of tables.
UNUSUAL_FILES = ("utf-16", "wal")
UNUSUAL_TABLES = ("without rowid", "generated")


class Maker:
    """Makes one file from its random numbers."""

    def __init__(self, path: Path, seed: int, unusual: str = "", page_size: int | None = None):
        self.random = random.Random(seed)
        self.path = path
        self.unusual = unusual
        self.page_size = page_size or self.random.choice(PAGE_SIZES[:5] * 2 + PAGE_SIZES)
        self.connection = apsw.Connection(str(path))

    def make(self) -> None:
        run, chance = self.connection.execute, self.random.random
        run(f"PRAGMA page_size = {self.page_size}")
        if chance() < 0.3:
            reserved = ctypes.c_int(self.random.choice([1, 8, 12, 31, 32]))
            code = apsw.SQLITE_FCNTL_RESERVE_BYTES
            self.connection.file_control("main", code, ctypes.addressof(reserved))
        run(f"PRAGMA auto_vacuum = {self.random.choice([0, 0, 0, 1, 2])}")
        if self.unusual == "utf-16":
            run("PRAGMA encoding = 'UTF-16'")
        run(f"PRAGMA journal_mode = {'WAL' if self.unusual == 'wal' else 'MEMORY'}")
        run("PRAGMA synchronous = OFF")
        for i in range(self.random.choice([1, 2, 3])):
            self.table(self.random.choice(["t", 'x "y"', "Zz"]) if i == 0 else "uv"[i - 1])
        if chance() < 0.2:
            run("VACUUM")
        elif chance() < 0.2:
            run("PRAGMA incremental_vacuum")
        self.connection.close()

    def table(self, name: str) -> None:
        quoted = '"' + name.replace('"', '""') + '"'
        run, chance = self.connection.execute, self.random.random
        types = TYPES + (REAL_TYPES if chance() < 0.2 else [])
        strict = chance() < 0.1
        if strict:
            types = ["INTEGER", "TEXT", "ANY", "INT", "BLOB"]
        columns = [f"c{i} {self.random.choice(types)}" for i in range(self.random.randint(1, 9))]
        columns = [f"{column}{' NOT NULL' if chance() < 0.1 else ''}" for column in columns]
        options = ["STRICT"] if strict else []
        if self.unusual == "without rowid":
            columns.insert(self.random.randint(0, len(columns)), "k INTEGER PRIMARY KEY")
            options.append("WITHOUT ROWID")
        elif chance() < 0.4:
            key = self.random.choice(["", " ASC", " DESC", " AUTOINCREMENT"])
            columns.insert(self.random.randint(0, len(columns)), f"k INTEGER PRIMARY KEY{key}")
        if self.unusual == "generated":
            columns.append("g ANY AS (c0)" + self.random.choice([" STORED", " VIRTUAL"]))
        run(f"CREATE TABLE {quoted} ({', '.join(columns)}) {', '.join(options)}")
        if chance() < 0.2:
            run(f"CREATE INDEX {name[0]}_index ON {quoted} (c0)")
        self.rows(quoted)
        if chance() < 0.4 and not strict:
            default = ["", " DEFAULT 7", " DEFAULT -12", " DEFAULT NULL", " DEFAULT 'x'"]
            default += [" DEFAULT 1.5", " DEFAULT x'00'", " DEFAULT 0x10", " NOT NULL DEFAULT 3"]
            for i in range(self.random.randint(1, 2)):
                type_ = self.random.choice(types)
                run(f"ALTER TABLE {quoted} ADD COLUMN n{i} {type_}{self.random.choice(default)}")
            self.rows(quoted)
        if chance() < 0.3:
            row_id = "k" if self.unusual == "without rowid" else "rowid"
            run(f"DELETE FROM {quoted} WHERE {row_id} % {self.random.randint(2, 5)} = 0")
            self.rows(quoted, 10)

    def rows(self, quoted: str, most: int | None = None) -> None:
        columns = [
            (name, type_, hidden)
            for _, name, type_, _, _, _, hidden in self.connection.execute(
                f"PRAGMA table_xinfo({quoted})"
            )
            if not hidden
        ]
        keyed = any(name == "k" for name, *_ in columns)
        n = self.random.choice([0, 1, 3, 40, 150]) if most is None else most
        names = [name for name, *_ in columns]
        if not keyed:
            names.insert(0, "rowid")
        style = self.random.choice(["none", "few", "far"])
        form = self.random.choice(["same", "mixed", "mixed"])
        row = [self.value(type_) for _, type_, _ in columns]
        with self.connection:
            for i in range(n):
                if form == "mixed" or i % 20 == 0:
                    row = [self.value(type_) for _, type_, _ in columns]
                values = list(row)
                row_id = {
                    "none": None,
                    "few": self.random.randint(-50, 400),
                    "far": self.random.choice(INTEGERS),
                }[style]
                if keyed:
                    values[names.index("k")] = row_id if row_id is not None else i + 1000
                else:
                    values.insert(0, row_id)
                places = ["CAST(? AS TEXT)" if value in NOT_UTF_8 else "?" for value in values]
                # STRICT tables reject some values; a table whose last row id is used rejects all.
                with contextlib.suppress(apsw.Error):
                    self.connection.execute(
                        f"INSERT OR IGNORE INTO {quoted} ({', '.join(names)}) "
                        f"VALUES ({', '.join(places)})",
                        values,
                    )

    def value(self, type_: str) -> object:
        pick = self.random.random()
        if pick < 0.1:
            return None
        if "INT" in type_ or (type_ in ("NUMERIC", *REAL_TYPES) and pick < 0.9):
            if pick < 0.15:
                return self.random.choice(REALS)
            if pick < 0.151:
                return self.random.choice(TEXTS)
            return self.random.choice([self.random.choice(INTEGERS), self.random.randint(0, 99)])
        if type_ == "BLOB" and pick < 0.6:
            return self.random.randbytes(self.random.choice([0, 1, 30, 3000]))
        if pick < 0.2 and type_ != "TEXT":
            return self.random.choice(INTEGERS + REALS)
        if pick < 0.25:
            return self.random.choice(NOT_UTF_8)
        if pick < 0.32:
            return self.random.choice("xyz") * self.random.choice(
                [self.page_size // 4, self.page_size, self.page_size * 3, self.page_size * 20]
            )
        return self.random.choice(TEXTS)


def make(path: Path, seed: int, unusual: str = "", page_size: int | None = None) -> Path:
    """The file of a seed; `unusual` is one of UNUSUAL_FILES or UNUSUAL_TABLES."""
    Maker(path, seed, unusual, page_size).make()
    return path


def damaged(content: bytes, seed: int) -> bytes:
    """The same file, damaged."""
    chance = random.Random(seed)
    size = int.from_bytes(content[16:18], "big")
    size = 65536 if size == 1 else size
    out = bytearray(content)
    pages = max(1, len(content) // size)
    kind = chance.choice(
        ["bytes", "bytes", "heads", "heads", "zeros", "copy", "cut", "more", "header"]
    )
    if kind in ("bytes", "heads"):
        for _ in range(chance.choice([1, 1, 2, 8])):
            at = chance.randrange(pages) * size
            at += chance.randrange(min(size, 40) if kind == "heads" else size)
            out[at % len(out)] = chance.choice([0, 1, 5, 13, 255, chance.randrange(256)])
    elif kind == "zeros":
        at = chance.randrange(pages) * size
        out[at : at + size] = bytes(len(out[at : at + size]))
    elif kind == "copy":
        to, of = chance.randrange(pages) * size, chance.randrange(pages) * size
        out[to : to + size] = out[of : of + size]
    elif kind == "cut":
        return bytes(
            out[: chance.choice([chance.randrange(len(out)), chance.randrange(pages) * size])]
        )
    elif kind == "more":
        out += chance.randbytes(chance.choice([1, size, size // 2]))
    else:
        out[chance.randrange(100)] = chance.randrange(256)
    return bytes(out)


def execute(path: Path, *statements: str) -> Path:
    """Change a file, without waiting for the disk; returns its path."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def query(path: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement, values).fetchall()
