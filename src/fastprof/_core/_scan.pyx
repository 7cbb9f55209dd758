"""Read the rows of a SELECT into numpy columns, stepping it in C in APSW's SQLite."""
import apsw

from libc.stdint cimport int64_t, uintptr_t

from fastprof._core.fp_column cimport fp_columns, fp_row_filter
from fastprof._core.fp_scan cimport (
    fp_scan, fp_scan_free, fp_scan_new, fp_scan_step, fp_sqlite_api, sqlite3,
)
from fastprof._core.fp_status cimport FP_E_SQLITE, fp_status
from fastprof._core._column cimport Filter, Room, Rows, fill
from fastprof._core._status cimport check

from fastprof.errors import BadInputError, MissingDependencyError


cdef extern from *:
    "const fp_sqlite_api *fp_scan_loaded_api(void);"
    const fp_sqlite_api *fp_scan_loaded_api() nogil


cdef class Reader:
    """An APSW connection prepared for scanning.

    Loads this module into the connection as a run-time extension to obtain SQLite's functions, and
    disables extension loading again.

    Raises
    ------
    MissingDependencyError
        APSW cannot load extensions, or has an unexpected version of SQLite.
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
                "the function table of APSW's SQLite has an unexpected layout; "
                "please report apsw.sqlite_lib_version() and your platform"
            )
        self.db = <sqlite3 *><uintptr_t>connection.sqlite3_pointer()

    cdef int refuse(self, str what) except -1:
        raise BadInputError(f"{what}: {self.api.errmsg(self.db).decode('utf-8', 'replace')}")

    def scan(self, str sql, Room room, str what, Filter keep=None, progress=None):
        """Read all rows of a SELECT whose result columns match those of `room`, in order.

        The other parameters are those of `_column.fill`.
        """
        fill(_Steps(self, sql, what), room, what, keep, progress)


cdef class _Steps(Rows):
    """The rows of a SELECT."""
    cdef Reader reader
    cdef fp_scan *scan

    def __cinit__(self, Reader reader, str sql, str what):
        self.reader = reader
        self.scan = fp_scan_new(reader.api, reader.db, sql.encode())
        if self.scan is NULL:
            reader.refuse(what)

    def __dealloc__(self):
        fp_scan_free(self.scan)

    cdef fp_status step(self, const fp_columns *columns, fp_row_filter keep, int64_t limit,
                        int64_t capacity, int64_t *kept, int64_t *stepped) noexcept nogil:
        return fp_scan_step(self.scan, columns, keep, limit, capacity, kept, stepped)

    cdef int refuse(self, fp_status status, what) except -1:
        return self.reader.refuse(what) if status == FP_E_SQLITE else check(status, what)
