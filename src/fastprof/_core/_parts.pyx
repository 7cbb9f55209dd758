"""Find the part of its call that each kernel does."""
import numpy as np

from libc.stdint cimport int8_t, int32_t, uint8_t

from fastprof._core._arrays cimport numbers
from fastprof._core.fp_parts cimport (
    FP_ALL_PARTS, FP_BESIDE, FP_PARTS, FP_VARIANTS, FP_WHOLE, fp_claim, fp_parts_find,
    fp_parts_kernels, fp_parts_tables,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


MOST_PARTS, WHOLE, BESIDE, ALL_PARTS = FP_PARTS, FP_WHOLE, FP_BESIDE, FP_ALL_PARTS
VARIANTS = FP_VARIANTS


cdef const uint8_t *_flags(array, Py_ssize_t n) except? NULL:
    cdef const uint8_t[::1] flags = array.reshape(-1).view(np.uint8)
    if flags.shape[0] != n:
        raise ValueError(f"expected {n} flags, found {flags.shape[0]}")
    return &flags[0] if n else NULL


def find(kernels, tables):
    """Find the cell of each kernel: (row * ALL_PARTS + part) * VARIANTS + variant.

    `part` is 0 .. MOST_PARTS - 1, WHOLE (all kernels of the call share its cost) or BESIDE (other
    kernels have the cost).

    Two kernels of one backward call may match the same gradient and none the other. If the names
    are ambiguous, the second kernel is assigned the other gradient, on the guess that the gradient
    of the left operand comes first. Both cost the same, so the sum does not depend on the guess.

    Parameters
    ----------
    kernels : sequence of arrays
        kind : int32 [n], the call and its direction
        row : int32 [kinds], row in the tables of each kind
        name : int32 [n], -1 for none
        info : int32 [names + 1], the information in each name, the last without a name
        group : int32 [n], the instance of the call, -1 for none
        taken : uint8 [groups], number of main parts done by operators inside that have their own
            cost
    tables : sequence of arrays; rows of one form differ in sizes only
        form : int32 [rows]
        part_of : int8 [forms, infos]
            The part of the call that the kernel does, 0 .. MOST_PARTS - 1, -1 for none.
        sure : bool [forms, infos]
            Whether the kernel's name identifies the part unambiguously.
        variant : uint8 [forms, infos], below VARIANTS
        main : bool [forms, MOST_PARTS]
            Whether the part is one of the call's products.
        costed, whole_always : bool [forms]
            Whether the call's cost is known; whether unrecognised kernels do the entire call.
        other : bool [infos]
            Whether the kernel is unrecognised.

    Returns
    -------
    int32 [n]

    Raises
    ------
    InternalError
        An index is out of bounds.
    BadInputError
        There are more than 10^8 rows.
    """
    cdef fp_parts_tables table
    cdef fp_parts_kernels k
    kind, row, name, info, group, taken = kernels
    form, part_of, sure, variant, main, costed, whole_always, other = tables
    k.n, k.n_kinds, k.n_names, k.n_groups = len(kind), len(row), len(info) - 1, len(taken)
    out = np.empty(k.n, np.int32)
    if k.n == 0:
        return out
    k.kind, k.name, k.group = numbers(kind, k.n), numbers(name, k.n), numbers(group, k.n)
    k.row, k.info = numbers(row, k.n_kinds), numbers(info, k.n_names + 1)
    k.taken = _flags(taken, k.n_groups)
    table.n_rows, table.n_forms, table.n_infos = len(form), len(part_of), len(other)
    cdef Py_ssize_t n_places = <Py_ssize_t>table.n_forms * table.n_infos
    table.form = numbers(form, table.n_rows)
    table.part_of = <const int8_t *>_flags(part_of, n_places)
    table.sure, table.variant = _flags(sure, n_places), _flags(variant, n_places)
    table.main = _flags(main, <Py_ssize_t>table.n_forms * FP_PARTS)
    table.costed = _flags(costed, table.n_forms)
    table.whole_always = _flags(whole_always, table.n_forms)
    table.other = _flags(other, table.n_infos)
    cdef int32_t[::1] cell = out
    cdef uint8_t[::1] claims = np.empty(n_places * sizeof(fp_claim) + 1, np.uint8)
    cdef uint8_t[::1] state = np.empty(k.n_groups + 1, np.uint8)
    cdef fp_status status
    with nogil:
        status = fp_parts_find(&table, &k, &cell[0], <fp_claim *>&claims[0], &state[0])
    check(status, "parts of calls")
    return out
