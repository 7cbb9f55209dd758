"""Read tables of an SQLite file from its pages into numpy columns, without SQLite."""
import os

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastprof._core.fp_column cimport fp_columns, fp_row_filter
from fastprof._core.fp_pages cimport (
    FP_PAGES_HEADER, fp_btree, fp_btree_free, fp_btree_init, fp_pages, fp_pages_init,
)
from fastprof._core.fp_record cimport FP_RECORD_COLUMNS
from fastprof._core.fp_status cimport FP_E_UNUSUAL, fp_status
from fastprof._core.fp_walk cimport (
    FP_ADDED_NULL, FP_ADDED_NUMBER, FP_ADDED_OTHER, FP_PLACE_OF_ROW_ID, fp_place, fp_walk,
    fp_walk_free, fp_walk_new, fp_walk_step, fp_walk_why,
)
from fastprof._core._column cimport Filter, Room, Rows, fill
from fastprof._core._status cimport check


HEADER = FP_PAGES_HEADER
MOST_PLACES = FP_RECORD_COLUMNS
OF_ROW_ID = FP_PLACE_OF_ROW_ID
ADDED_NULL, ADDED_NUMBER, ADDED_OTHER = FP_ADDED_NULL, FP_ADDED_NUMBER, FP_ADDED_OTHER


class UnusualError(Exception):
    """A file that `_pages` cannot read but SQLite may; the message gives the reason."""


cdef int _check(fp_status status, str what, const char *why) except -1:
    if status == FP_E_UNUSUAL:
        raise UnusualError(why.decode())
    return check(status, what)


cdef class File:
    """An SQLite file whose pages can be read directly.

    Parameters
    ----------
    file : int
        File descriptor, borrowed: keep it open while the object is in use.

    Raises
    ------
    UnusualError
        The header requires SQLite.
    """
    cdef fp_pages pages

    def __cinit__(self, int file):
        cdef const char *why = NULL
        cdef bytes header = os.pread(file, FP_PAGES_HEADER, 0)
        cdef int64_t size = os.fstat(file).st_size
        if len(header) < FP_PAGES_HEADER:
            raise UnusualError("the file is shorter than an SQLite header")
        cdef const uint8_t *first = <const uint8_t *>PyBytes_AS_STRING(header)
        # A separate statement: as an argument of _check, `why` might be evaluated before this call.
        cdef fp_status status = fp_pages_init(first, size, file, &self.pages, &why)
        _check(status, "header", why)


cdef class Table:
    """A table: the leaf pages of a B-tree.

    Raises
    ------
    UnusualError
        The tree is damaged or has features that `_pages` does not read.
    """
    cdef File file
    cdef fp_btree tree

    def __cinit__(self, File file, uint32_t root):
        cdef const char *why = NULL
        cdef fp_status status
        self.file = file
        with nogil:
            status = fp_btree_init(&file.pages, root, &self.tree, &why)
        _check(status, "interior pages", why)

    def __dealloc__(self):
        fp_btree_free(&self.tree)

    def __len__(self):
        """The number of leaf pages."""
        return self.tree.n

    def last_row_id(self, int64_t leaf):
        """The upper bound of the row ids in a leaf."""
        if not 0 <= leaf < self.tree.n:
            raise IndexError(f"leaf {leaf} of {self.tree.n}")
        return self.tree.leaves[leaf].last

    def scan(self, Room room, places, int64_t first, int64_t last, str what, Filter keep=None,
             progress=None):
        """Read the rows with ids first .. last.

        Parameters
        ----------
        places : list of (place, added, number), one for each column of `room`
            place : index of the value in the record, or OF_ROW_ID
            added, number : default for records that end before this value: ADDED_NULL,
                ADDED_NUMBER with the number, or ADDED_OTHER

        The other parameters are those of `_column.fill`.

        Raises
        ------
        UnusualError
            A record has features that `_pages` does not read.
        """
        if len(places) != len(room.specs):
            raise ValueError(f"expected {len(room.specs)} places, found {len(places)}")
        fill(_Walk(self, places, first, last), room, what, keep, progress)


cdef class _Walk(Rows):
    """The rows of a table."""
    cdef Table table
    cdef fp_place *places
    cdef fp_walk *walk

    def __cinit__(self, Table table, places, int64_t first, int64_t last):
        self.table = table
        self.places = <fp_place *>PyMem_Malloc(max(1, len(places)) * sizeof(fp_place))
        if self.places is NULL:
            raise MemoryError("out of memory for the places of columns")
        for i, (place, added, number) in enumerate(places):
            if not FP_PLACE_OF_ROW_ID <= place < FP_RECORD_COLUMNS:
                raise ValueError(f"expected a place below {FP_RECORD_COLUMNS}, found {place}")
            self.places[i] = fp_place(place, added, number)
        self.walk = fp_walk_new(&table.file.pages, &table.tree, self.places, len(places), first,
                                last)
        if self.walk is NULL:
            raise MemoryError("out of memory for reading pages")

    def __dealloc__(self):
        fp_walk_free(self.walk)
        PyMem_Free(self.places)

    cdef fp_status step(self, const fp_columns *columns, fp_row_filter keep, int64_t limit,
                        int64_t capacity, int64_t *kept, int64_t *stepped) noexcept nogil:
        return fp_walk_step(self.walk, columns, keep, limit, capacity, kept, stepped)

    cdef int refuse(self, fp_status status, what) except -1:
        return _check(status, what, fp_walk_why(self.walk))
