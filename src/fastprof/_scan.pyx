"""Fills numpy columns from a SELECT, stepped in C inside the SQLite that APSW carries."""
import apsw
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free

from fastprof._c cimport FP_E_SQLITE, FP_MORE, fp_status
from fastprof._pools cimport Keys, Names, fp_keys, fp_keys_find, fp_names
from fastprof._status cimport check

from fastprof.errors import BadInputError, MissingDependencyError


cdef extern from "fp_sqlite.h":
    ctypedef struct sqlite3:
        pass
    ctypedef struct fp_sqlite_api:
        int (*libversion_number)() noexcept nogil
        const char *(*errmsg)(sqlite3 *) noexcept nogil


cdef extern from *:
    "const fp_sqlite_api *fp_scan_loaded_api(void);"
    const fp_sqlite_api *fp_scan_loaded_api() nogil


cdef extern from "fp_scan.h":
    ctypedef enum fp_scan_kind:
        FP_SCAN_I64, FP_SCAN_I32, FP_SCAN_KEY, FP_SCAN_TEXT, FP_SCAN_RANGE
    int FP_SCAN_MAX_COLUMNS
    ctypedef struct fp_scan_column:
        fp_scan_kind kind
        int64_t none
        int shift
        bint may_be_null
        fp_keys *keys
        fp_names *names
        void *out
        int stride
        int64_t *seq
        int64_t *op_id
    ctypedef struct fp_scan:
        pass
    ctypedef struct fp_scratch:
        char *bytes
        size_t capacity
    fp_scan *fp_scan_new(const fp_sqlite_api *api, sqlite3 *db, const char *sql) nogil
    void fp_scan_free(fp_scan *scan) nogil
    fp_status fp_scan_step(fp_scan *scan, const fp_scan_column *columns, int n_columns,
                           fp_scan_filter filter, int64_t limit, int64_t capacity, int64_t *kept,
                           int64_t *stepped) nogil
    fp_status fp_scan_floor(fp_scan *scan, int64_t *stepped) nogil
    fp_status fp_scan_range_name(fp_names *names, fp_scratch *scratch, const char *text,
                                 size_t length, int32_t *label, int64_t *seq,
                                 int64_t *op_id) nogil


I64 = FP_SCAN_I64
I32 = FP_SCAN_I32
KEY = FP_SCAN_KEY
TEXT = FP_SCAN_TEXT
RANGE = FP_SCAN_RANGE

cdef int64_t _ROWS_A_STEP = 1 << 18


cdef class Filter:
    """Which rows to keep; made by the classes below and in other modules."""


cdef bint _keep_known(const void *state, const int64_t *values) noexcept nogil:
    return fp_keys_find(<const fp_keys *>state, values[0]) >= 0


cdef class KnownKeys(Filter):
    """Keeps the rows whose first column is in a pool of numbers."""
    cdef Keys keys

    def __cinit__(self, Keys keys):
        self.keys = keys
        self.filter.keep = _keep_known
        self.filter.state = keys.pool
        self.filter.n_columns = 1


cdef class Reader:
    """An APSW connection made ready for scanning.

    Loads this module into the connection's SQLite as a run-time extension, which is how it gets
    SQLite's own functions; extension loading is switched off again at once.
    """
    cdef object connection
    cdef const fp_sqlite_api *api
    cdef sqlite3 *db

    def __init__(self, connection):
        self.connection = connection
        connection.enable_load_extension(True)
        try:
            connection.load_extension(__file__, "fp_scan_extension_init")
        except apsw.ExtensionLoadingError as error:
            raise MissingDependencyError(
                f"this build of APSW cannot load run-time extensions ({error}); "
                "install the wheel from PyPI: pip install apsw"
            ) from error
        finally:
            connection.enable_load_extension(False)
        self.api = fp_scan_loaded_api()
        major, minor, patch = (int(x) for x in apsw.sqlite_lib_version().split(".")[:3])
        if self.api.libversion_number() != major * 1000000 + minor * 1000 + patch:
            raise MissingDependencyError(
                "the SQLite inside APSW is laid out differently than expected; "
                "please report apsw.sqlite_lib_version() and your platform"
            )
        self.db = <sqlite3 *><uintptr_t>connection.sqlite3_pointer()

    cdef fp_scan *prepare(self, str sql, str what) except NULL:
        cdef bytes text = sql.encode()
        cdef fp_scan *scan = fp_scan_new(self.api, self.db, text)
        if scan is NULL:
            self.refuse(what)
        return scan

    cdef int refuse(self, str what) except -1:
        raise BadInputError(f"{what}: {self.api.errmsg(self.db).decode('utf-8', 'replace')}")

    def floor(self, str sql, str what):
        """Step the statement's rows, do nothing with them, and return how many there were."""
        cdef fp_scan *scan = self.prepare(sql, what)
        cdef int64_t stepped = 0
        cdef fp_status status
        with nogil:
            status = fp_scan_floor(scan, &stepped)
        try:
            if status == FP_E_SQLITE:
                self.refuse(what)
            return stepped
        finally:
            fp_scan_free(scan)

    def scan(self, str sql, columns, int64_t capacity, str what, Filter keep=None, progress=None):
        """Read all rows of a SELECT into numpy columns.

        Parameters
        ----------
        sql : the statement; its result columns are those of `columns`, in order
        columns : list of (name, kind, none, pool, shift, may_be_null, side); pool a Keys or Names,
            else None; may_be_null as the table's declaration says; side 0, 1 or 2 where the column
            is one of the three of an array called `name`, else None
        capacity : how many rows to make room for at first; grows as needed
        what : what is read, for error messages ("run.sqlite: table X")
        keep : which rows to keep, by their first columns; all by default
        progress : called with the number of rows stepped so far, every 262144 rows

        Returns
        -------
        dict of arrays [rows kept]: int64 for I64, else int32; a RANGE column NAME also gives
        NAME_seq and NAME_op_id, int64, -1 where the text has none. Sides come as [rows kept, 3];
        those that no column filled are undefined.
        """
        cdef int n_columns = len(columns)
        if n_columns > FP_SCAN_MAX_COLUMNS:
            raise ValueError(f"{what}: {n_columns} columns, at most {FP_SCAN_MAX_COLUMNS}")
        cdef fp_scan_column *specs = <fp_scan_column *>PyMem_Malloc(
            n_columns * sizeof(fp_scan_column))
        if specs is NULL:
            raise MemoryError(what)
        cdef fp_scan *scan = NULL
        cdef fp_scan_filter row_filter
        row_filter.keep, row_filter.state, row_filter.n_columns = NULL, NULL, 0
        if keep is not None:
            row_filter = keep.filter
        cdef int64_t kept = 0, stepped = 0, limit = _ROWS_A_STEP
        cdef fp_status status = FP_MORE
        # One more than expected: growing copies all columns, room that is not used costs nothing.
        capacity = max(capacity + 1, 1024)
        try:
            arrays = _allocate(columns, capacity)
            _point(specs, columns, arrays)
            scan = self.prepare(sql, what)
            while status == FP_MORE:
                if kept >= capacity:
                    capacity += capacity // 2
                    _resize(arrays, capacity)
                    _point(specs, columns, arrays)
                with nogil:
                    status = fp_scan_step(scan, specs, n_columns, row_filter, limit, capacity,
                                          &kept, &stepped)
                PyErr_CheckSignals()
                if progress is not None:
                    progress(stepped)
            if status == FP_E_SQLITE:
                self.refuse(what)
            check(status, what)
            _resize(arrays, kept)
            return arrays
        finally:
            fp_scan_free(scan)
            PyMem_Free(specs)


def _allocate(columns, int64_t capacity):
    arrays = {}
    for name, kind, _, _, _, _, side in columns:
        sides = () if side is None else (3,)
        if name not in arrays:
            dtype = np.int64 if kind == FP_SCAN_I64 else np.int32
            arrays[name] = np.empty((capacity, *sides), dtype)
        if kind == FP_SCAN_RANGE:
            arrays[name + "_seq"] = np.empty(capacity, np.int64)
            arrays[name + "_op_id"] = np.empty(capacity, np.int64)
    return arrays


def _resize(arrays, int64_t capacity):
    for array in arrays.values():
        array.resize((capacity, *array.shape[1:]), refcheck=False)


cdef char *_address(array):
    return <char *><uintptr_t>array.ctypes.data


cdef int _point(fp_scan_column *specs, columns, arrays) except -1:
    cdef int i
    cdef Py_ssize_t offset
    for i, (name, kind, none, pool, shift, may_be_null, side) in enumerate(columns):
        specs[i].kind = kind
        specs[i].none = none
        specs[i].shift = shift
        specs[i].may_be_null = may_be_null
        specs[i].keys = (<Keys?>pool).pool if kind == FP_SCAN_KEY else NULL
        specs[i].names = (<Names?>pool).pool if kind >= FP_SCAN_TEXT else NULL
        specs[i].stride = 1 if side is None else 3
        offset = 0 if side is None else side * arrays[name].itemsize
        specs[i].out = _address(arrays[name]) + offset
        specs[i].seq = specs[i].op_id = NULL
        if kind == FP_SCAN_RANGE:
            specs[i].seq = <int64_t *>_address(arrays[name + "_seq"])
            specs[i].op_id = <int64_t *>_address(arrays[name + "_op_id"])
    return 0


def split_range_names(Names pool, texts):
    """What a RANGE column gives, for texts that stand elsewhere.

    Returns label int32, seq int64, op_id int64, each [len(texts)]; None gives -1 in all three.
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
            check(fp_scan_range_name(pool.pool, &scratch, data, len(data),
                                     &label[i], &seq[i], &op_id[i]), "range names")
    finally:
        free(scratch.bytes)
    return labels, seqs, op_ids
