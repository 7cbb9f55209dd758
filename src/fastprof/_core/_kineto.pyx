"""Parse torch.profiler traces, as JSON text, into columns of events."""
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t

from fastprof._core.fp_kineto cimport (
    FP_KINETO_INT64, FP_KINETO_NO_TRACE, FP_KINETO_TABLES, FP_KINETO_TRIPLE, FP_KINETO_WHOLE,
    fp_kineto, fp_kineto_column, fp_kineto_count, fp_kineto_free, fp_kineto_lost, fp_kineto_new,
    fp_kineto_read, fp_kineto_rows, fp_kineto_state, fp_kineto_texts_of, fp_kineto_type,
)
from fastprof._core.fp_names cimport fp_names, fp_names_bytes, fp_names_count
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core._status cimport check

import numpy as np


# A missing time, pid, tid, flow id or allocation size; other missing values are -1.
NONE = INT64_MIN
# Base of pids and tids that are strings: this number minus the id in the pool "places".
TEXT_PLACE = -(INT64_MAX // 2) - 1
# In the order of the enums of fp_kineto_rows.h and fp_kineto_texts.h.
TABLES = (
    "gpu", "launches", "ranges", "gpu_annotations", "flows", "memory", "metadata", "syncs",
)
POOLS = ("names", "labels", "stacks", "places", "categories", "notes", "root")


def _types_of_columns(int table):
    """The columns of a table in order: name -> (dtype, shape of one value)."""
    cdef fp_kineto_type type = 0
    cdef const char *name
    columns = {}
    while True:
        name = fp_kineto_column(table, len(columns), &type)
        if name is NULL:
            return columns
        dtype = np.int64 if type == FP_KINETO_INT64 else np.int32
        columns[name.decode()] = dtype, (3,) if type == FP_KINETO_TRIPLE else ()


COLUMNS = {name: _types_of_columns(table) for table, name in enumerate(TABLES)}


cdef class KinetoReader:
    """Incremental parser of one trace, fed in blocks of bytes.

    Parameters
    ----------
    name : str
        Name of the input in messages.
    """

    cdef fp_kineto *kineto
    cdef fp_kineto_rows tables[8]
    cdef readonly str name
    cdef list arrays

    def __cinit__(self, str name):
        self.name = name
        self.arrays = [
            {key: np.empty((0, *shape), dtype) for key, (dtype, shape) in COLUMNS[table].items()}
            for table in TABLES
        ]
        self.kineto = fp_kineto_new()
        if self.kineto is NULL:
            raise MemoryError(f"{name}: out of memory")

    def __dealloc__(self):
        fp_kineto_free(self.kineto)

    cdef int resize(self, int table, int64_t capacity) except -1:
        """Set the capacity of a table in rows."""
        cdef int64_t address
        for i, array in enumerate(self.arrays[table].values()):
            array.resize((capacity, *array.shape[1:]), refcheck=False)
            address = array.ctypes.data
            self.tables[table].columns[i] = <void *>address
        self.tables[table].capacity = capacity
        return 0

    def feed(self, const uint8_t[::1] block):
        """Parse the complete events in `block` and return the number of bytes consumed.

        Pass the remaining bytes again at the start of the next block, until `is_whole`.

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
        while status == FP_MORE:
            with nogil:
                status = fp_kineto_read(self.kineto, bytes + at, length - at, self.tables, &used)
            at += used
            if status == FP_MORE:
                for i in range(FP_KINETO_TABLES):
                    capacity = self.tables[i].capacity
                    if self.tables[i].rows == capacity:
                        self.resize(i, capacity + capacity // 2 + 1024)
            PyErr_CheckSignals()
        check(status, self.name)
        return at

    @property
    def is_trace(self):
        """False if the text starts with neither an object nor a list."""
        cdef int has_events
        return fp_kineto_state(self.kineto, &has_events) != FP_KINETO_NO_TRACE

    @property
    def is_whole(self):
        """Whether the end of the JSON text has been read."""
        cdef int has_events
        return fp_kineto_state(self.kineto, &has_events) == FP_KINETO_WHOLE

    @property
    def has_events(self):
        """Whether a list of events has been found."""
        cdef int has_events = 0
        fp_kineto_state(self.kineto, &has_events)
        return bool(has_events)

    @property
    def lost(self):
        """The number of malformed events skipped, and their size in bytes."""
        cdef int64_t n_bytes = 0
        n = fp_kineto_lost(self.kineto, &n_bytes)
        return n, n_bytes

    def counts(self):
        """The number of events for each (ph, category); either is None if missing."""
        cdef int32_t i = 0, phase = 0, category = 0
        cdef int64_t n = fp_kineto_count(self.kineto, i, &phase, &category)
        categories = self.texts("categories")
        counts = {}
        while n:
            key = chr(phase) if phase else None, categories[category] if category >= 0 else None
            counts[key] = counts.get(key, 0) + n
            i += 1
            n = fp_kineto_count(self.kineto, i, &phase, &category)
        return counts

    def texts(self, str pool):
        """The distinct texts of one of POOLS in order of id; invalid UTF-8 becomes U+FFFD."""
        cdef const fp_names *names = fp_kineto_texts_of(self.kineto, POOLS.index(pool))
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
            For each of TABLES, a dict of its COLUMNS: arrays [n]; grid and block [n, 3].
        """
        for i in range(FP_KINETO_TABLES):
            self.resize(i, self.tables[i].rows)
        arrays, self.arrays = self.arrays, None
        return dict(zip(TABLES, arrays))
