"""A report of four kernels with special values in every kind of cell."""

import io

import numpy as np

from fastprof.model.columns import Ints, Lists, SharedValues, Values
from fastprof.writers import write_report

INT64_MAX = 2**63 - 1


def values(*cells):
    """One value per row; None is "unknown"."""
    distinct = list(dict.fromkeys(cell for cell in cells if cell is not None))
    ids = [-1 if cell is None else distinct.index(cell) for cell in cells]
    return Values(np.array(ids, np.int32), distinct)


def shared(rows: list[int], id_of_row: list[int], *cells: object) -> SharedValues:
    """A column of repeated values whose rows are shared; -1 is unknown."""
    return SharedValues(np.array(rows, np.int32), np.array(id_of_row, np.int32), list(cells))


def lists(*cells):
    """One list of numbers per row."""
    offsets = np.cumsum([0, *map(len, cells)], dtype=np.int64)
    return Lists(offsets, np.array([number for cell in cells for number in cell], np.int64))


def ints(*cells, dtype=np.int64):
    """One number per row, or three; None is "unknown"."""
    width = max((len(cell) for cell in cells if isinstance(cell, tuple)), default=1)
    filled = [(-1,) * width if cell is None else cell for cell in cells]
    flat = [
        cell if width == 3 else (cell[0] if isinstance(cell, tuple) else cell) for cell in filled
    ]
    return Ints(np.array(flat, dtype))


COLUMNS = {
    "idx": ints(1, 2, 3, 4, dtype=np.int32),
    "seq": lists([65], [], [1, 2], [123456789]),
    "altseq": lists([], [], [], [-5]),
    "tid": ints(3940300608, None, 7, 8),
    "layer": values(("a", "b"), (), ('say "x"', "é層"), None),
    "trace": values(("/x/t.py:1", "/x/u v.py:22"), (), None, ("t.py:310",)),
    "dir": values("fprop", "bprop", None, "fprop"),
    "sub": ints(0, 1, None, 12345),
    "mod": values("torch.nn.functional", "Tensor", None, ""),
    "op": values("linear", "__mul__", None, "a b\tc"),
    "kernel": values("sgemm_128", "", "vec<é>", None),
    "params": values('M=1,"x",', "na=na,", None, "T=[(2, 3)]"),
    "sil": ints(6624, 0, INT64_MAX, None),
    "tc": values("1", "0", "-", None),
    "device": ints(0, 1, None, 10000, dtype=np.int32),
    "stream": ints(7, 7, 7, 7, dtype=np.int32),
    "grid": ints((640, 1, 1), None, (2147483647, 65535, 65535), (1, 2, 3), dtype=np.int32),
    "block": ints((128, 1, 1), None, (1024, 1, 1), (1, 2, 3)),
    "flops": ints(0, None, 9317840000, 1),
    "bytes": ints(1125600, None, 0, -(2**63)),
    "tc_reason": values("-", "M=33 is not a multiple of 8 (fp16)", "-", None),
}


def report(keys, style, width=None, columns=COLUMNS):
    """The output of `write_report` as text."""
    file = io.BytesIO()
    write_report(columns, keys, style, file, width)
    return file.getvalue().decode()


def without_rows():
    """The same columns with no kernels."""
    empty = {key: values() for key in COLUMNS}
    empty |= {key: Ints(np.empty(0, np.int64)) for key in ("idx", "tid", "sil", "flops")}
    empty |= {key: Ints(np.empty((0, 3), np.int32)) for key in ("grid", "block")}
    return empty | {key: lists() for key in ("seq", "altseq")}
