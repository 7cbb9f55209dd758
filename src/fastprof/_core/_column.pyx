"""Read rows from any source into numpy columns, with filters."""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free

from fastprof._core.fp_column cimport (
    FP_COLUMN_I32, FP_COLUMN_I64, FP_COLUMN_KEY, FP_COLUMN_LENGTH, FP_COLUMN_MESSAGE,
    FP_COLUMN_RANGE, FP_COLUMN_TEXT, FP_MAX_COLUMNS, fp_column, fp_column_is_range,
    fp_column_range_name, fp_columns, fp_row_filter, fp_scratch, fp_together,
)
from fastprof._core.fp_keys cimport fp_keys, fp_keys_find
from fastprof._core.fp_names cimport fp_names_bytes
from fastprof._core.fp_status cimport FP_E_UNUSUAL, FP_MORE, fp_status
from fastprof._core._pools cimport Keys, Names
from fastprof._core._status cimport check


I64 = FP_COLUMN_I64
I32 = FP_COLUMN_I32
KEY = FP_COLUMN_KEY
TEXT = FP_COLUMN_TEXT
LENGTH = FP_COLUMN_LENGTH
RANGE = FP_COLUMN_RANGE
MESSAGE = FP_COLUMN_MESSAGE

# The key of the column of indices into the distinct rows of columns kept together.
TOGETHER = "together"

_TYPES = {
    I64: np.int64, I32: np.int32, KEY: np.int32, TEXT: np.int32, LENGTH: np.int32,
    RANGE: np.int32, MESSAGE: np.int32,
}

cdef int64_t _ROWS_A_STEP = 1 << 18


cdef class Filter:
    """Selects the rows to keep; base class of the filters here and in other modules."""


cdef bint _keep_known(const void *state, const int64_t *values) noexcept nogil:
    return fp_keys_find(<const fp_keys *>state, values[0]) >= 0


cdef class KnownKeys(Filter):
    """Keeps rows whose first column is in a pool of numbers."""
    cdef Keys keys

    def __cinit__(self, Keys keys):
        self.keys = keys
        self.filter.keep = _keep_known
        self.filter.state = keys.pool
        self.filter.n_columns = 1


cdef bint _keep_among(const void *state, const int64_t *values) noexcept nogil:
    cdef const int64_t *numbers = <const int64_t *>state
    cdef int64_t i
    for i in range(1, numbers[0] + 1):
        if numbers[i] == values[0]:
            return True
    return False


cdef class Among(Filter):
    """Keeps rows whose first column is one of a few numbers."""
    cdef int64_t[::1] numbers

    def __cinit__(self, numbers):
        self.numbers = np.array([len(numbers), *numbers], np.int64)
        self.filter.keep = _keep_among
        self.filter.state = &self.numbers[0]
        self.filter.n_columns = 1


cdef class Rows:
    """A source of rows; base class of those in other modules."""

    cdef fp_status step(self, const fp_columns *columns, fp_row_filter keep, int64_t limit,
                        int64_t capacity, int64_t *kept, int64_t *stepped) noexcept nogil:
        """Read rows into columns; the parameters are those of fp_scan_step."""
        return FP_E_UNUSUAL

    cdef int refuse(self, fp_status status, what) except -1:
        """Raise for an error status."""
        return check(status, what)


cdef class Room:
    """Columns that consecutive scans append rows to.

    Parameters
    ----------
    columns : list of (name, kind, none, pool, shift, may_be_null, together)
        pool : Keys or Names, or None
        may_be_null : False if the table declares the column NOT NULL
        together : whether the numbers of this column and of all others with this flag are stored
            once per distinct combination
    capacity : initial capacity in rows; grows as needed
    """

    def __cinit__(self, columns, int64_t capacity):
        if len(columns) > FP_MAX_COLUMNS:
            raise ValueError(f"expected at most {FP_MAX_COLUMNS} columns, found {len(columns)}")
        self.specs = list(columns)
        # One more than expected: growing copies all columns, while untouched memory is free.
        self.capacity = max(capacity + 1, 1024)
        self.arrays = _allocate(self.specs, self.capacity)
        parts = [(name, kind) for name, kind, *_, together in self.specs if together]
        parts.sort(key=lambda part: part[1] != FP_COLUMN_I64)  # wide columns first, for alignment
        self.values = np.zeros(1, [(name, _TYPES[kind]) for name, kind in parts])
        self.distinct = Names()

    def __len__(self):
        """The number of rows read."""
        return self.kept

    def columns(self, int64_t further=0):
        """Return the columns, with `further` uninitialized rows at the end; ends the scans.

        Returns
        -------
        dict of arrays [rows + further]
            int64 for I64, else int32. A RANGE or MESSAGE column NAME also gives NAME_seq and
            NAME_op_id, int64, -1 if the text has none. Columns kept together give one column
            TOGETHER instead, indices into the distinct rows of `together()`.
        """
        _resize(self.arrays, self.kept + further)
        return self.arrays

    def together(self):
        """The distinct rows of the columns kept together, in order of appearance.

        Returns
        -------
        dict of arrays [distinct rows]
        """
        cdef const int64_t *offsets = NULL
        cdef const char *data = fp_names_bytes(self.distinct.pool, &offsets)
        cdef bytes rows = data[:offsets[len(self.distinct)]]
        if TOGETHER not in self.arrays:
            return {}
        table = np.frombuffer(rows, self.values.dtype)
        return {name: table[name].copy() for name in table.dtype.names}


cdef int fill(Rows rows, Room room, str what, Filter keep, progress) except -1:
    """Append all rows to the columns; on an error, the columns are unchanged.

    Parameters
    ----------
    what : name of the input in error messages ("run.sqlite: table X")
    keep : filter on the first columns; None keeps all rows
    progress : called with the number of rows read so far, every 262144 rows; or None
    """
    cdef int n_columns = len(room.specs)
    cdef fp_column *specs = <fp_column *>PyMem_Malloc(n_columns * sizeof(fp_column))
    if specs is NULL:
        raise MemoryError(what)
    cdef fp_row_filter row_filter
    row_filter.keep, row_filter.state, row_filter.n_columns = NULL, NULL, 0
    if keep is not None:
        row_filter = keep.filter
    cdef fp_columns columns
    columns.each, columns.n = specs, n_columns
    cdef int64_t kept = room.kept, stepped = 0, limit = _ROWS_A_STEP
    cdef fp_status status = FP_MORE
    try:
        _point(specs, &columns.together, room)
        while status == FP_MORE:
            if kept >= room.capacity:
                room.capacity += room.capacity // 2
                _resize(room.arrays, room.capacity)
                _point(specs, &columns.together, room)
            with nogil:
                status = rows.step(&columns, row_filter, limit, room.capacity, &kept, &stepped)
            PyErr_CheckSignals()
            if progress is not None:
                progress(stepped)
        if status < 0:
            rows.refuse(status, what)
        room.kept = kept
        return 0
    finally:
        PyMem_Free(specs)


def _allocate(columns, int64_t capacity):
    arrays = {}
    for name, kind, *_, together in columns:
        if together:
            continue
        arrays[name] = np.empty(capacity, _TYPES[kind])
        if fp_column_is_range(kind):
            arrays[name + "_seq"] = np.empty(capacity, np.int64)
            arrays[name + "_op_id"] = np.empty(capacity, np.int64)
    if any(together for *_, together in columns):
        arrays[TOGETHER] = np.empty(capacity, np.int32)
    return arrays


def _resize(arrays, int64_t capacity):
    for array in arrays.values():
        array.resize(capacity, refcheck=False)


cdef char *_address(array):
    return <char *><uintptr_t>array.ctypes.data


cdef int _point(fp_column *specs, fp_together *parts, Room room) except -1:
    """Make the columns those of the room, whose arrays may have moved."""
    cdef int i
    arrays, fields = room.arrays, room.values.dtype.fields
    for i, (name, kind, none, pool, shift, may_be_null, together) in enumerate(room.specs):
        specs[i].kind = kind
        specs[i].none = none
        specs[i].shift = shift
        specs[i].may_be_null = may_be_null
        specs[i].keys = (<Keys?>pool).pool if kind == FP_COLUMN_KEY else NULL
        interned = kind == FP_COLUMN_TEXT or fp_column_is_range(kind)
        specs[i].names = (<Names?>pool).pool if interned else NULL
        specs[i].is_part = together
        specs[i].seq = specs[i].op_id = NULL
        if together:
            specs[i].out = _address(room.values) + <Py_ssize_t>fields[name][1]
            continue
        specs[i].out = _address(arrays[name])
        if fp_column_is_range(kind):
            specs[i].seq = <int64_t *>_address(arrays[name + "_seq"])
            specs[i].op_id = <int64_t *>_address(arrays[name + "_op_id"])
    parts.pool = NULL
    if TOGETHER in arrays:
        parts.pool = room.distinct.pool
        parts.values = _address(room.values)
        parts.length = room.values.itemsize
        parts.out = <int32_t *>_address(arrays[TOGETHER])
    return 0


def split_range_names(Names pool, texts):
    """Split texts that are not in a table as a RANGE column does.

    Returns
    -------
    label int32, seq int64, op_id int64, each [len(texts)]
        -1 in all three where the text is None.
    """
    cdef fp_scratch scratch
    scratch.bytes = NULL
    scratch.capacity = 0
    cdef Py_ssize_t i, n = len(texts)
    labels, seqs, op_ids = (np.full(n, -1, dtype) for dtype in (np.int32, np.int64, np.int64))
    cdef int32_t[::1] label = labels
    cdef int64_t[::1] seq = seqs
    cdef int64_t[::1] op_id = op_ids
    cdef bytes data
    try:
        for i in range(n):
            if texts[i] is None:
                continue
            data = texts[i].encode("utf-8", "replace")
            check(fp_column_range_name(pool.pool, &scratch, data, len(data),
                                       &label[i], &seq[i], &op_id[i]), "range names")
    finally:
        free(scratch.bytes)
    return labels, seqs, op_ids
