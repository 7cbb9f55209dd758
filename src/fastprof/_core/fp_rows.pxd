from libc.stdint cimport int64_t

from fastprof._core.fp_seqmarkers cimport fp_seqmarkers
from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_text cimport fp_text, fp_texts


cdef extern from "write/fp_rows.h":
    ctypedef enum fp_cell_kind:
        FP_CELL_INT
        FP_CELL_INT3
        FP_CELL_TEXT
        FP_CELL_LIST
        FP_CELL_SEQMARKERS

    ctypedef struct fp_cell:
        fp_cell_kind kind
        int is_wide
        const void *values
        const int64_t *offsets
        int64_t n_values
        int64_t none
        int64_t width
        fp_text before
        fp_text none_text
        fp_text open
        fp_text separator
        fp_text close
        fp_texts texts
        fp_seqmarkers *markers

    fp_status fp_rows_write(
        const fp_cell *cells, int64_t n_cells, fp_text row_end, int64_t first, int64_t last,
        char *buffer, int64_t capacity, int64_t *next, int64_t *used) nogil
