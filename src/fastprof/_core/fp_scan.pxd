from libc.stdint cimport int64_t

from fastprof._core.fp_column cimport fp_columns, fp_row_filter
from fastprof._core.fp_status cimport fp_status


cdef extern from "scan/fp_scan.h":
    ctypedef struct sqlite3:
        pass

    ctypedef struct fp_sqlite_api:
        int (*libversion_number)() noexcept nogil
        const char *(*errmsg)(sqlite3 *) noexcept nogil

    ctypedef struct fp_scan:
        pass

    fp_scan *fp_scan_new(const fp_sqlite_api *api, sqlite3 *db, const char *sql) nogil
    void fp_scan_free(fp_scan *scan) nogil
    fp_status fp_scan_step(fp_scan *scan, const fp_columns *columns, fp_row_filter filter,
                           int64_t limit, int64_t capacity, int64_t *kept,
                           int64_t *stepped) nogil
