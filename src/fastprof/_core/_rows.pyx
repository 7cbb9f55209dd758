"""Format columns as rows of bytes."""
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from fastprof._core._arrays cimport pointer32, pointer64, pointer8, require
from fastprof._core.fp_rows cimport (
    FP_CELL_INT, FP_CELL_INT3, FP_CELL_LIST, FP_CELL_SEQMARKERS, FP_CELL_TEXT, fp_cell,
    fp_cell_kind, fp_rows_write,
)
from fastprof._core.fp_seqmarkers cimport (
    fp_seqmarkers_again, fp_seqmarkers_free, fp_seqmarkers_new, fp_seqmarkers_tables,
)
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core.fp_text cimport FP_TEXT_BEYOND, fp_text, fp_texts
from fastprof._core._status cimport check

import numpy as np


# Padding after each text: C reads past its end.
cdef bytes _BEYOND = bytes(FP_TEXT_BEYOND)

# Size of a block of rows: large, so threads seldom wait for their turn to write, yet most of it is
# in the processor's cache when it is written; just below 2 MiB to leave room for the header of the
# allocator.
cdef int64_t BLOCK_SIZE = (1 << 21) - 4096


cdef class RowWriter:
    """Formats `n_rows` rows of cells, each row followed by `row_end`.

    Add the columns from left to right, then fill blocks. Arrays are borrowed, not copied: do not
    modify them before the last block is filled.

    Parameters
    ----------
    n_rows : int
        Length of every column.
    row_end : bytes
        Text after the last cell of a row.
    """

    cdef fp_cell *cells
    cdef int64_t n_cells
    cdef readonly int64_t n_rows
    cdef fp_text row_end
    cdef list kept

    def __cinit__(self, int64_t n_rows, bytes row_end):
        require(n_rows >= 0, "n_rows is negative")
        self.n_rows = n_rows
        self.kept = []
        self.row_end = self.text(row_end)

    def __dealloc__(self):
        for i in range(self.n_cells):
            fp_seqmarkers_free(self.cells[i].markers)
        PyMem_Free(self.cells)

    cdef fp_text text(self, bytes text):
        """The text as a C struct; the writer keeps it alive."""
        cdef bytes padded = text + _BEYOND
        self.kept.append(padded)
        return fp_text(PyBytes_AS_STRING(padded), len(text))

    cdef fp_texts table(self, texts):
        """The concatenated texts as a C struct; the writer keeps them alive."""
        cdef fp_texts table
        cdef bytes joined = b"".join([*texts, _BEYOND])
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
        self.kept += [joined, offsets]
        table.bytes = PyBytes_AS_STRING(joined)
        table.offsets = pointer64(offsets)
        table.count = len(texts)
        return table

    cdef fp_cell *new_cell(self, fp_cell_kind kind, bytes before, bytes none_text) except NULL:
        cdef fp_cell *cells = <fp_cell *>PyMem_Realloc(
            self.cells, (self.n_cells + 1) * sizeof(fp_cell))
        if cells == NULL:
            raise MemoryError
        self.cells = cells
        cdef fp_cell *cell = &cells[self.n_cells]
        memset(cell, 0, sizeof(fp_cell))
        cell.kind = kind
        cell.before = self.text(before)
        cell.none_text = self.text(none_text)
        return cell

    cdef int set_values(self, fp_cell *cell, values) except -1:
        """Set the flat int32 or int64 array of a cell's numbers."""
        cell.is_wide = values.dtype == np.int64
        if cell.is_wide:
            cell.values = pointer64(values)
        else:
            cell.values = pointer32(values)
        self.kept.append(values)
        return 0

    cdef int set_brackets(self, fp_cell *cell, tuple brackets) except -1:
        # No comprehension: Cython would convert each struct to a dict.
        cell.open = self.text(brackets[0])
        cell.separator = self.text(brackets[1])
        cell.close = self.text(brackets[2])
        return 0

    def add_ints(self, bytes before, values, *, int64_t none, bytes none_text, int64_t width=0):
        """Add a column of numbers, int32 or int64 [n_rows]; `none` prints as `none_text`.

        With a width, cells are right-aligned and never cut.
        """
        require(values.shape == (self.n_rows,), "values are not [n_rows]")
        cdef fp_cell *cell = self.new_cell(FP_CELL_INT, before, none_text)
        self.set_values(cell, values)
        cell.none = none
        cell.width = width
        self.n_cells += 1

    def add_triples(
        self, bytes before, values, *, int64_t none, bytes none_text, tuple brackets,
        int64_t width=0,
    ):
        """Add a column of three numbers, int32 or int64 [n_rows, 3].

        `brackets` is (opening, separator, closing): `(b"(", b", ", b")")`. If the first number is
        `none`, `none_text` is printed. With a width, cells are left-aligned and cut.
        """
        require(values.shape == (self.n_rows, 3), "values are not [n_rows, 3]")
        require(values.flags.c_contiguous, "values are not contiguous")
        cdef fp_cell *cell = self.new_cell(FP_CELL_INT3, before, none_text)
        self.set_values(cell, values.reshape(-1))
        self.set_brackets(cell, brackets)
        cell.none = none
        cell.width = width
        self.n_cells += 1

    def add_texts(self, bytes before, ids, texts, *, bytes none_text):
        """Add a column of texts: row i prints `texts[ids[i]]`, or `none_text` if the id is -1.

        `ids` is int32 [n_rows]; `texts` are bytes, already quoted, cut and padded.
        """
        require(ids.shape == (self.n_rows,), "ids are not [n_rows]")
        # Prepend `before` to each text: C then copies both at once.
        cdef fp_cell *cell = self.new_cell(FP_CELL_TEXT, b"", before + none_text)
        cell.values = pointer32(ids)
        self.kept.append(ids)
        cell.texts = self.table([before + text for text in texts])
        self.n_cells += 1

    def add_singles(
        self, bytes before, values, *, int64_t none, bytes none_text, tuple brackets,
        int64_t width=0,
    ):
        """Add a column of lists of one number each, int32 or int64 [n_rows].

        `none` is an empty list, which prints as `none_text`; `brackets` and `width` as in
        `add_lists`.
        """
        require(values.shape == (self.n_rows,), "values are not [n_rows]")
        cdef fp_cell *cell = self.new_cell(FP_CELL_LIST, before, none_text)
        self.set_values(cell, values)
        self.set_brackets(cell, brackets)
        cell.none = none
        cell.width = width
        self.n_cells += 1

    def add_lists(
        self, bytes before, offsets, values, *, bytes none_text, tuple brackets, int64_t width=0,
    ):
        """Add a column of lists: row i prints `values[offsets[i]:offsets[i + 1]]`, both int64.

        `brackets` as in `add_triples`; an empty list prints as `none_text`. With a width, cells are
        left-aligned and cut.
        """
        require(offsets.shape == (self.n_rows + 1,), "offsets are not [n_rows + 1]")
        cdef fp_cell *cell = self.new_cell(FP_CELL_LIST, before, none_text)
        require(values.dtype == np.int64, "values are not int64")
        self.set_values(cell, values)
        self.kept.append(offsets)
        cell.offsets = pointer64(offsets)
        cell.n_values = len(values)
        self.set_brackets(cell, brackets)
        cell.width = width
        self.n_cells += 1

    def add_seqmarkers(
        self, bytes before, frame_of_row, frame_parent, range_of_frame, label_of_range,
        seq_of_range, op_id_of_range, is_torch, heads, tails, *, bytes quote,
    ):
        """Add the list of torch ranges around each kernel: `['mm, seq = 7, op_id = 9', ...]`.

        Parameters
        ----------
        before : bytes
        frame_of_row : int32 [n_rows]
            Innermost frame of the kernel; -1 for none, an empty list.
        frame_parent, range_of_frame : int32 [n_frames]
            Parent of each frame, with a lower index, -1 at a root; range of each frame.
        label_of_range : int32 [n_ranges]
        seq_of_range, op_id_of_range : int64 [n_ranges]
            Sequence number and operator id; -1 for none.
        is_torch : uint8 [n_labels]
            1 for the labels to list.
        heads, tails : list of bytes [n_labels]
            Name and sizes, escaped for use between two quotes.
        quote : bytes
            The quote, one character.
        """
        cdef fp_seqmarkers_tables tables
        require(len(quote) == 1, "quote is not one character")
        require(frame_of_row.shape == (self.n_rows,), "frame_of_row is not [n_rows]")
        require(len(frame_parent) == len(range_of_frame), "frames differ in length")
        require(len(label_of_range) == len(seq_of_range) == len(op_id_of_range),
                "ranges differ in length")
        require(len(is_torch) == len(heads) == len(tails), "labels differ in length")
        self.kept.append((frame_of_row, frame_parent, range_of_frame, label_of_range,
                          seq_of_range, op_id_of_range, is_torch))
        tables.frame_of_row = pointer32(frame_of_row)
        tables.frame_parent = pointer32(frame_parent)
        tables.range_of_frame = pointer32(range_of_frame)
        tables.label_of_range = pointer32(label_of_range)
        tables.seq_of_range = pointer64(seq_of_range)
        tables.op_id_of_range = pointer64(op_id_of_range)
        tables.is_torch = pointer8(is_torch)
        tables.n_rows = self.n_rows
        tables.n_frames = len(frame_parent)
        tables.n_ranges = len(label_of_range)
        tables.heads = self.table(heads)
        tables.tails = self.table(tails)
        tables.quote = quote[0]
        cdef fp_cell *cell = self.new_cell(FP_CELL_SEQMARKERS, before, b"")
        cell.markers = fp_seqmarkers_new(&tables)
        if cell.markers == NULL:
            raise MemoryError
        self.n_cells += 1

    def block(self):
        """Return a new block; use each block on one thread."""
        return Block(self)


cdef class Block:
    """A reusable buffer of formatted rows, for one thread."""
    cdef RowWriter rows
    cdef fp_cell *cells  # private copies, because seqmarker cells cache their last list
    cdef int64_t n_cells
    cdef object bytes
    cdef int64_t used

    def __cinit__(self, RowWriter rows):
        self.rows = rows
        self.bytes = np.empty(BLOCK_SIZE, np.uint8)
        self.cells = <fp_cell *>PyMem_Malloc((rows.n_cells + 1) * sizeof(fp_cell))
        if self.cells == NULL:
            raise MemoryError
        for i in range(rows.n_cells):
            self.cells[i] = rows.cells[i]
            if rows.cells[i].kind == FP_CELL_SEQMARKERS:
                self.cells[i].markers = fp_seqmarkers_again(rows.cells[i].markers)
                if self.cells[i].markers == NULL:
                    raise MemoryError
            self.n_cells += 1

    def __dealloc__(self):
        for i in range(self.n_cells):
            fp_seqmarkers_free(self.cells[i].markers)
        PyMem_Free(self.cells)

    def fill(self, int64_t first, int64_t end):
        """Fill the block with rows from `first`, at most to `end - 1`; return the next row.

        Raises
        ------
        InternalError
            An id or offset of a column is out of bounds.
        """
        require(0 <= first <= end <= self.rows.n_rows, "rows are out of bounds")
        cdef fp_status status
        cdef int64_t used  # a local: C writes it for every row
        cdef uint8_t[::1] view = self.bytes
        while True:
            with nogil:
                status = fp_rows_write(
                    self.cells, self.n_cells, self.rows.row_end, first, end,
                    <char *>&view[0], view.shape[0], &first, &used)
            self.used = used
            if status != FP_MORE or used:
                check(status, "writing rows")
                return first
            self.bytes = view = np.empty(2 * view.shape[0], np.uint8)  # the row exceeds the block

    def filled(self):
        """The bytes of the rows in the block, valid until the next `fill`."""
        return memoryview(self.bytes)[:self.used]
