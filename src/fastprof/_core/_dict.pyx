"""Parse dict lines into columns of numbers and of ids of distinct texts."""
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t

from fastprof._core._arrays cimport written32, written64
from fastprof._core.fp_dict cimport (
    FP_DICT_INT, FP_DICT_INTS, FP_DICT_LIST, FP_DICT_LISTS, FP_DICT_TEXT, FP_DICT_TEXTS,
    FP_DICT_TRIPLE, FP_DICT_TRIPLES, fp_dict, fp_dict_columns, fp_dict_free, fp_dict_key,
    fp_dict_kind, fp_dict_line, fp_dict_lines, fp_dict_new, fp_dict_pool, fp_dict_read,
    fp_dict_stop,
)
from fastprof._core.fp_names cimport fp_names, fp_names_bytes, fp_names_count
from fastprof._core.fp_status cimport FP_E_RANGE, FP_E_SYNTAX, FP_MORE, fp_status
from fastprof._core._status cimport check

import numpy as np

from fastprof.errors import BadInputError


def _keys_of(fp_dict_kind kind, int n):
    """The names of the `n` keys of a kind, in column order."""
    return tuple(fp_dict_key(kind, i).decode() for i in range(n))


INT_KEYS = _keys_of(FP_DICT_INT, FP_DICT_INTS)
TRIPLE_KEYS = _keys_of(FP_DICT_TRIPLE, FP_DICT_TRIPLES)
LIST_KEYS = _keys_of(FP_DICT_LIST, FP_DICT_LISTS)
TEXT_KEYS = _keys_of(FP_DICT_TEXT, FP_DICT_TEXTS)


cdef int64_t more(int64_t capacity) noexcept:
    """The capacity to grow to: 1.5 times the old one."""
    return capacity + capacity // 2 + 1024


cdef object resized(array, int64_t length, int64_t filled):
    """Resize an array without touching memory past `filled` rows.

    ndarray.resize would zero the new rows, and so make all their pages resident.
    """
    if length <= len(array):
        array.resize((length, *array.shape[1:]), refcheck=False)
        return array
    longer = np.empty((length, *array.shape[1:]), array.dtype)
    longer[:filled] = array[:filled]
    return longer


cdef class DictReader:
    """Incremental parser of dict lines, fed in blocks of bytes.

    Parameters
    ----------
    name : str
        Name of the input in messages.
    """

    cdef fp_dict *dict
    cdef fp_dict_columns columns
    cdef str name
    cdef dict arrays

    def __cinit__(self, str name):
        self.dict = fp_dict_new()
        if self.dict == NULL:
            raise MemoryError
        self.name = name
        self.arrays = {key: np.empty(0, np.int64) for key in INT_KEYS}
        self.arrays |= {key: np.empty((0, 3), np.int32) for key in TRIPLE_KEYS}
        self.arrays |= {key: np.empty(0, np.int32) for key in TEXT_KEYS}
        self.arrays |= {("offsets", key): np.zeros(1, np.int64) for key in LIST_KEYS}
        self.arrays |= {("values", key): np.empty(0, np.int64) for key in LIST_KEYS}
        self.resize_rows(more(0))
        for i in range(FP_DICT_LISTS):
            self.resize_list(i, more(0))

    def __dealloc__(self):
        fp_dict_free(self.dict)

    cdef int resize_rows(self, int64_t capacity) except -1:
        """Set the capacity in rows."""
        for key, array in self.arrays.items():
            if isinstance(key, str):
                self.arrays[key] = resized(array, capacity, self.columns.rows)
            elif key[0] == "offsets":
                self.arrays[key] = resized(array, capacity + 1, self.columns.rows + 1)
        self.columns.capacity = capacity
        if capacity == 0:
            return 0
        for i, key in enumerate(INT_KEYS):
            self.columns.ints[i] = written64(self.arrays[key])
        for i, key in enumerate(TRIPLE_KEYS):
            self.columns.triples[i] = written32(self.arrays[key].reshape(-1))
        for i, key in enumerate(TEXT_KEYS):
            self.columns.texts[i] = written32(self.arrays[key])
        for i, key in enumerate(LIST_KEYS):
            self.columns.list_offsets[i] = written64(self.arrays["offsets", key])
        return 0

    cdef int resize_list(self, int i, int64_t capacity) except -1:
        """Set the capacity, in numbers, of the lists of one key."""
        filled = self.arrays["offsets", LIST_KEYS[i]][self.columns.rows]
        array = resized(self.arrays["values", LIST_KEYS[i]], capacity, filled)
        self.arrays["values", LIST_KEYS[i]] = array
        self.columns.list_capacity[i] = capacity
        if capacity:
            self.columns.list_values[i] = written64(array)
        return 0

    cdef int make_room(self) except -1:
        """Grow the rows if they are full, else all lists, because one of them is full."""
        if self.columns.rows == self.columns.capacity:
            self.resize_rows(more(self.columns.capacity))
            return 0
        for i in range(FP_DICT_LISTS):
            self.resize_list(i, more(self.columns.list_capacity[i]))
        return 0

    def expect(self, double times):
        """Reserve capacity for `times` times the rows read so far, as an estimate of the total.

        Unused capacity is free, because its pages are never touched; growing copies the rows.
        """
        cdef int64_t rows = self.columns.rows
        if rows * times > self.columns.capacity:
            self.resize_rows(<int64_t>(rows * times))
        for i in range(FP_DICT_LISTS):
            values = self.columns.list_offsets[i][rows] * times
            if values > self.columns.list_capacity[i]:
                self.resize_list(i, <int64_t>values)

    def feed(self, const uint8_t[::1] block, *, bint is_end=False):
        """Parse the complete lines in `block` and return the number of bytes consumed.

        Pass the remaining bytes again at the start of the next block. With `is_end`, the last line
        needs no newline.

        Raises
        ------
        BadInputError
            A line is not a dict line, or a number is out of range; the message gives the line.
        """
        if self.arrays is None:
            raise ValueError("the reader has finished")
        cdef size_t at = 0, used = 0, length = block.shape[0]
        cdef fp_status status = FP_MORE
        cdef const char *bytes = <const char *>&block[0] if length else NULL
        while status == FP_MORE:
            with nogil:
                status = fp_dict_read(self.dict, bytes + at, length - at, is_end, &self.columns,
                                      &used)
            at += used
            if status == FP_MORE:
                self.make_room()
            PyErr_CheckSignals()
        if status == FP_E_SYNTAX or status == FP_E_RANGE:
            raise BadInputError(self.complaint(status, block[at:]))
        check(status, self.name)
        return at

    cdef str complaint(self, fp_status status, block):
        """The error message for the line at the start of `block`."""
        line = bytes(block[:4 * 40]).split(b"\n")[0].decode("utf-8", "replace").strip()[:40]
        where = f"{self.name}: line {fp_dict_line(self.dict)}"
        place = f"at byte {fp_dict_stop(self.dict) + 1} of the line"
        if status == FP_E_RANGE:
            return f"{where}: a number {place} is out of range for its column, in {line!r}"
        return (f"{where}: expected a dict line, found {line!r} "
                f"(invalid {place}); create the file with: fastprof parse TRACE > net.dict")

    def finish(self):
        """Trim the arrays to the rows read and return them; ends the parsing.

        Returns
        -------
        dict
            For INT_KEYS int64 [n]; for TRIPLE_KEYS int32 [n, 3]; for TEXT_KEYS int32 [n], indices
            into `texts(key)`; for LIST_KEYS a pair of offsets [n + 1] and values, both int64.
            Missing values are -1, missing lists are empty.
        """
        for i in range(FP_DICT_LISTS):
            offsets = self.arrays["offsets", LIST_KEYS[i]]
            self.resize_list(i, offsets[self.columns.rows])
        self.resize_rows(self.columns.rows)
        arrays, self.arrays = self.arrays, None
        for key in LIST_KEYS:
            arrays[key] = arrays.pop(("offsets", key)), arrays.pop(("values", key))
        return arrays

    def texts(self, str key):
        """The distinct raw literals of a text key, as (bytes, line of first occurrence)."""
        cdef int column = TEXT_KEYS.index(key)
        cdef const int64_t *lines = fp_dict_lines(self.dict, column)
        cdef const fp_names *names = fp_dict_pool(self.dict, column)
        cdef const int64_t *offsets
        cdef const char *start = fp_names_bytes(names, &offsets)
        return [
            (start[offsets[i]:offsets[i + 1]], lines[i]) for i in range(fp_names_count(names))
        ]
