"""Read lists of records in a JSON text into columns, in blocks."""
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MIN, int64_t, uint8_t

from fastprof._core.fp_names cimport fp_names, fp_names_bytes, fp_names_count
from fastprof._core.fp_records cimport (
    FP_RECORDS_COLUMNS, FP_RECORDS_NUMBER, FP_RECORDS_TEXT, fp_records, fp_records_add,
    fp_records_free, fp_records_is_whole, fp_records_new, fp_records_read, fp_records_root,
    fp_records_rows, fp_records_texts,
)
from fastprof._core.fp_status cimport FP_E_SYNTAX, FP_MORE, fp_status
from fastprof._core._status cimport check

import numpy as np


cdef enum:
    _MOST_TABLES = 16

# A missing value.
NONE = INT64_MIN
# The column of the number of the record's root.
ROOT = "root"


cdef class RecordReader:
    """Incremental parser of one JSON text, fed in blocks of bytes.

    Parameters
    ----------
    name : str
        Name of the input in messages.
    root : str
        The path of objects to count; paths are those of fp_records.h.
    tables : dict of str to dict of str to str
        The columns of each table, by the path of its records: name to path in a record; "" is
        the whole value at the path, as text.
    texts : set of str
        The names of columns whose values are texts; others are numbers.
    """

    cdef fp_records *records
    cdef fp_records_rows tables[_MOST_TABLES]
    cdef readonly str name
    cdef readonly bint is_damaged
    cdef dict arrays

    def __cinit__(self, str name, str root, dict tables, texts):
        self.name = name
        self.records = fp_records_new()
        if self.records is NULL:
            raise MemoryError(f"{name}: out of memory")
        if len(tables) > _MOST_TABLES:
            raise ValueError(f"{len(tables)} tables, expected at most {_MOST_TABLES}")
        check(fp_records_root(self.records, root.encode()), name)
        self.arrays = {}
        for table, (path, fields) in enumerate(tables.items()):
            names = [ROOT, *fields]
            if len(names) > FP_RECORDS_COLUMNS:
                raise ValueError(f"{path}: {len(names)} columns")
            self.arrays[path] = {column: np.empty(0, np.int64) for column in names}
            for i, column in enumerate(fields, start=1):
                kind = FP_RECORDS_TEXT if column in texts else FP_RECORDS_NUMBER
                status = fp_records_add(
                    self.records, path.encode(), fields[column].encode(), table, i, kind
                )
                check(status, name)

    def __dealloc__(self):
        fp_records_free(self.records)

    cdef int resize(self, int table, int64_t capacity) except -1:
        """Set the capacity of a table in rows."""
        cdef int64_t address
        for i, array in enumerate(list(self.arrays.values())[table].values()):
            array.resize(capacity, refcheck=False)
            address = array.ctypes.data
            self.tables[table].columns[i] = <int64_t *>address
        self.tables[table].capacity = capacity
        return 0

    def feed(self, const uint8_t[::1] block):
        """Parse the complete records in `block` and return the number of bytes consumed.

        Pass the remaining bytes again at the start of the next block, until `is_whole` or
        `is_damaged`.

        Raises
        ------
        BadInputError
            There are more than 2147483647 distinct texts.
        """
        if self.arrays is None:
            raise ValueError("the reader has finished")
        cdef size_t at = 0, used = 0, length = block.shape[0]
        cdef fp_status status = FP_MORE
        cdef const char *bytes = <const char *>&block[0] if length else NULL
        cdef int64_t capacity
        cdef int n_tables = len(self.arrays)
        while status == FP_MORE:
            with nogil:
                status = fp_records_read(
                    self.records, bytes + at, length - at, self.tables, n_tables, &used
                )
            at += used
            if status == FP_MORE:
                for i in range(n_tables):
                    capacity = self.tables[i].capacity
                    if self.tables[i].rows == capacity:
                        self.resize(i, capacity + capacity // 2 + 1024)
            PyErr_CheckSignals()
        if status == FP_E_SYNTAX:
            self.is_damaged = True
        else:
            check(status, self.name)
        return at

    @property
    def is_whole(self):
        """Whether the end of the JSON text has been read."""
        return bool(fp_records_is_whole(self.records))

    @property
    def is_trace(self):
        """False after malformed text: the rest cannot be read."""
        return not self.is_damaged

    def texts(self):
        """The distinct texts in order of id; invalid UTF-8 becomes U+FFFD."""
        cdef const fp_names *names = fp_records_texts(self.records)
        cdef const int64_t *offsets
        cdef const char *start = fp_names_bytes(names, &offsets)
        return [
            start[offsets[i]:offsets[i + 1]].decode("utf-8", "replace")
            for i in range(fp_names_count(names))
        ]

    def finish(self):
        """Trim the arrays to the rows read and return them; ends the parsing.

        Returns
        -------
        dict
            For each path of a table, its columns by name, int64 [n], in the order of the text;
            ROOT is the number of the object at the root path, from 0.
        """
        for i in range(len(self.arrays)):
            self.resize(i, self.tables[i].rows)
        arrays, self.arrays = self.arrays, None
        return arrays
