"""floor.c as Python functions. The library is compiled into bench/out when it is out of date."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import apsw

ROOT = Path(__file__).resolve().parents[2]
CSRC, OUT = ROOT / "csrc", ROOT / "bench" / "out"
SOURCE = Path(__file__).with_name("floor.c")
LINKED = (
    *("base/fp_keys", "scan/fp_column", "scan/fp_pages", "scan/fp_record"),
    *("text/fp_json", "text/fp_names"),
)
FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared", f"-I{CSRC}")  # optimised as the package is


class FloorError(Exception):
    """The library does not compile, or cannot read a table."""


class Place(ctypes.Structure):
    """fp_place of csrc/scan/fp_walk.h."""

    _fields_ = (
        ("place", ctypes.c_int),
        ("added", ctypes.c_int),
        ("added_number", ctypes.c_int64),
    )


def build(folder: Path = OUT) -> Path:
    """Compile the library unless it is newer than its sources.

    Raises
    ------
    FloorError
        There is no C compiler, or it reports an error.
    """
    library = folder / "floor.so"
    sources = [SOURCE, *CSRC.rglob("*.[ch]")]
    if library.exists() and library.stat().st_mtime > max(s.stat().st_mtime for s in sources):
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / library.name
        files = [str(SOURCE), *(str(CSRC / f"{name}.c") for name in LINKED)]
        command = [os.environ.get("CC", "cc"), *FLAGS, *files, "-o", str(made)]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except OSError as error:
            raise FloorError(f"no C compiler: {command[0]}: {error.strerror}; set CC") from error
        except subprocess.CalledProcessError as error:
            raise FloorError(f"{SOURCE} does not compile:\n{error.stderr}") from error
        made.replace(library)  # other processes may load it at the same time
    return library


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build()))
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    library.floor_select.argtypes = [pointer, ctypes.c_char_p]
    library.floor_select.restype = integer
    library.floor_table_new.argtypes = [ctypes.c_int, integer, ctypes.c_uint32]
    library.floor_table_new.restype = pointer
    library.floor_table_free.argtypes = [pointer]
    library.floor_table_free.restype = None
    library.floor_walk.argtypes = [
        *(pointer, ctypes.POINTER(Place), ctypes.c_int, integer, integer),
        ctypes.POINTER(ctypes.c_uint64),
    ]
    library.floor_walk.restype = integer
    return library


def select(connection: apsw.Connection, sql: str) -> int:
    """Step a SELECT in C, drop its rows, and return their number.

    Raises
    ------
    FloorError
    """
    library = _library()
    connection.enable_load_extension(True)
    connection.load_extension(library._name, "floor_extension_init")
    connection.enable_load_extension(False)
    rows = library.floor_select(connection.sqlite3_pointer(), sql.encode())
    if rows < 0:
        raise FloorError(f"SQLite cannot run {sql}")
    return int(rows)


class Table:
    """A table whose rows are read from the pages of its file; a context manager."""

    def __init__(self, path: str | os.PathLike[str], root: int) -> None:
        self._file = os.open(path, os.O_RDONLY)
        size = os.fstat(self._file).st_size
        self._table = _library().floor_table_new(self._file, size, root)
        if not self._table:
            os.close(self._file)
            raise FloorError(f"{os.fsdecode(path)}: no readable table at page {root}")

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *exception: object) -> None:
        _library().floor_table_free(self._table)
        os.close(self._file)

    def walk(
        self, places: Sequence[tuple[int, int, int]], first: int, last: int
    ) -> tuple[int, int]:
        """Read the rows with ids first .. last, and drop them.

        places : of each column, as `Layout.places_of` returns them

        Returns
        -------
        rows : int
        sum : int
            Of the values (integers, hashes of texts), modulo 2^64.

        Raises
        ------
        FloorError
        """
        wanted = (Place * len(places))(*places)
        total = ctypes.c_uint64()
        rows = _library().floor_walk(
            self._table, wanted, len(places), first, last, ctypes.byref(total)
        )
        if rows < 0:
            raise FloorError("damaged, or not readable without SQLite")
        return int(rows), total.value
