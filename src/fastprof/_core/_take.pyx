"""Look up values by index (-1 for none), find distinct indices, sort and remove rows."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from fastprof._core._arrays cimport pointer64, pointer8
from fastprof._core.fp_status cimport FP_E_INDEX, fp_status
from fastprof._core.fp_take cimport (
    FP_RADIX_COUNTS, fp_radix_sort, fp_take, fp_take_distinct, fp_take_index, fp_take_place,
    fp_take_ranks, fp_take_slices, fp_take_where, fp_take_without,
)
from fastprof._core._status cimport check


def take(values, const int32_t[::1] index, int64_t none=-1, out=None):
    """Return values[index], and `none` where the index is -1.

    Parameters
    ----------
    values : numbers or flags of 1, 2, 4 or 8 bytes, [m]
    index : int32 [n], -1 .. m - 1
    none : a value of the type of `values`
    out : array [n] of the dtype of `values`, optional: where to write

    Returns
    -------
    `out`, or a new array

    Raises
    ------
    InternalError
        An index is out of bounds.
    """
    cdef int64_t n = index.shape[0], m = len(values)
    cdef size_t size = values.itemsize
    cdef const uint8_t[::1] from_
    cdef const uint8_t[::1] otherwise
    cdef uint8_t[::1] to
    cdef fp_status status
    if out is None:
        out = np.empty(n, values.dtype)
    if out.dtype != values.dtype or len(out) != n:
        raise ValueError(f"expected room for {n} {values.dtype}, found {len(out)} {out.dtype}")
    if values.ndim != 1 or size not in (1, 2, 4, 8):
        raise ValueError(f"expected numbers of 1, 2, 4 or 8 bytes, [m], found {values.dtype}, "
                         f"{list(values.shape)}")
    if n == 0:
        return out
    # C needs an address if there are no values. Every index must be -1 then.
    from_ = np.ascontiguousarray(values if m else np.zeros(1, values.dtype)).view(np.uint8)
    otherwise = np.full(1, none, values.dtype).view(np.uint8)
    to = out.view(np.uint8)
    with nogil:
        status = fp_take(&from_[0], size, m, &index[0], n, &otherwise[0], &to[0])
    check(status, "look-up")
    return out


def objects(list values, const int32_t[::1] index):
    """Return an object array of values[index], and None where the index is -1.

    Raises
    ------
    InternalError
        An index is out of bounds.
    """
    cdef Py_ssize_t i, at, n = index.shape[0], m = len(values)
    out = np.empty(n, object)
    cdef object[::1] found = out
    for i in range(n):
        at = index[i]
        if at < -1 or at >= m:
            check(FP_E_INDEX, "look-up")
        if at >= 0:
            found[i] = values[at]
    return out


def distinct(const int32_t[::1] index, int32_t n_values, inner=None, outer=None):
    """Return the distinct indices and the position of each element among them.

    Parameters
    ----------
    index : int32 [n], -1 .. n_values - 1
    inner, outer : int32, optional
        The indices are inner[index], or outer[inner[index]]; -1 where any of these is -1.

    Returns
    -------
    used : list of int
        The distinct indices, ascending.
    place : int32 [n]
        used[place] equals the indices.
    """
    cdef fp_take_index indices
    cdef const int32_t[::1] of_row
    cdef const int32_t[::1] of_inner
    cdef int32_t n_used = 0
    indices.n, indices.inner, indices.outer = index.shape[0], NULL, NULL
    places, all_used = np.empty(indices.n, np.int32), np.empty(n_values + 1, np.int32)
    if indices.n == 0:
        return [], places
    cdef int32_t[::1] place = places
    cdef int32_t[::1] used = all_used
    cdef int32_t[::1] number = np.empty(n_values + 1, np.int32)
    cdef fp_status status
    # C needs an address if there are no values. Every index must be -1 then.
    indices.row = &index[0]
    if inner is not None:
        indices.n_inner = len(inner)
        of_row = inner if len(inner) else index
        indices.inner = &of_row[0]
    if outer is not None:
        indices.n_outer = len(outer)
        of_inner = outer if len(outer) else index
        indices.outer = &of_inner[0]
    with nogil:
        status = fp_take_distinct(&indices, n_values, &number[0], &used[0], &n_used, &place[0])
    check(status, "distinct values")
    return all_used[:n_used].tolist(), places


def where(flags, const int32_t[::1] index):
    """The rows whose flag flags[index] is set, int64, ascending; without rows of index -1.

    Parameters
    ----------
    flags : bool or uint8 [m], 0 or 1
    index : int32 [n], -1 .. m - 1
    """
    cdef int64_t n = index.shape[0], m = len(flags), n_found = 0
    cdef const uint8_t[::1] flag = flags.view(np.uint8)
    found = np.empty(n + 1, np.int64)
    cdef int64_t[::1] rows = found
    cdef fp_status status
    if n:
        with nogil:
            status = fp_take_where(pointer8(flag), m, &index[0], n, &rows[0], &n_found)
        check(status, "look-up of flags")
    return found[:n_found].copy()


def ranks(const int32_t[::1] index, int32_t n_values):
    """The number of distinct smaller indices of each element, int32 [n]; -1 where the index is -1.

    index : int32 [n], -1 .. n_values - 1
    """
    cdef int64_t n = index.shape[0]
    out = np.empty(n, np.int32)
    cdef int32_t[::1] rank = out
    cdef uint64_t[::1] used = np.empty(n_values // 64 + 1, np.uint64)
    cdef int32_t[::1] before = np.empty(n_values // 64 + 1, np.int32)
    cdef fp_status status
    if n:
        with nogil:
            status = fp_take_ranks(&index[0], n, n_values, &used[0], &before[0], &rank[0])
        check(status, "ranks")
    return out


def without(items, const int64_t[::1] rows):
    """Remove rows from an array in place; returns the shortened view.

    Parameters
    ----------
    items : [n], C-contiguous
    rows : int64 [m], the rows to remove, strictly ascending
    """
    cdef int64_t n = len(items), n_gaps = rows.shape[0], i
    cdef size_t size = items.itemsize
    cdef uint8_t[::1] memory
    for i in range(n_gaps):
        if not (rows[i - 1] if i else -1) < rows[i] < n:
            raise ValueError(f"expected strictly ascending rows below {n}, found {rows[i]}")
    if n_gaps:
        memory = items.view(np.uint8)
        with nogil:
            fp_take_without(<char *>&memory[0], size, n, &rows[0], n_gaps)
    return items[:n - n_gaps]


def ascending(const int64_t[::1] values):
    """The rows in ascending order of their numbers, int64 [n]; equal ones keep their order."""
    cdef int64_t n = values.shape[0], i
    cdef uint64_t least, span
    cdef int low = int(n).bit_length()
    if n == 0:
        return np.empty(0, np.int64)
    numbers = np.asarray(values)
    least = <uint64_t><int64_t>numbers.min()
    span = <uint64_t><int64_t>numbers.max() - least
    if span >> (63 - low):
        return np.argsort(numbers, kind="stable")
    # The number in the high bits, the row in the low ones.
    packed = np.empty(n, np.uint64)
    cdef uint64_t[::1] items = packed
    cdef uint64_t[::1] scratch = np.empty(n, np.uint64)
    cdef int64_t[::1] count = np.empty(FP_RADIX_COUNTS, np.int64)
    with nogil:
        for i in range(n):
            items[i] = (<uint64_t>values[i] - least) << low | <uint64_t>i
        fp_radix_sort(&items[0], &scratch[0], n, low, &count[0])
    packed &= np.uint64((1 << low) - 1)
    return packed.view(np.int64)


def place(const int64_t[::1] values, const int64_t[::1] low, const int64_t[::1] high,
          const int64_t[::1] wanted, bint after=False):
    """Return the place of each number in its own slice of some values.

    Parameters
    ----------
    values : int64 [m]
    low, high : int64 [n], the slices values[low:high], ascending
    wanted : int64 [n]
    after : behind equal values; default before them

    Returns
    -------
    int64 [n], low .. high

    Raises
    ------
    InternalError
        A slice is out of bounds.
    """
    cdef fp_take_slices slices
    cdef const int64_t *from_ = pointer64(values)
    cdef int64_t m = values.shape[0]
    cdef int64_t[::1] out
    cdef fp_status status
    slices.n = wanted.shape[0]
    if low.shape[0] != slices.n or high.shape[0] != slices.n:
        raise ValueError(f"expected slices for {slices.n} numbers, found {low.shape[0]}, "
                         f"{high.shape[0]}")
    found = np.empty(slices.n, np.int64)
    if slices.n == 0:
        return found
    slices.low, slices.high, slices.wanted = &low[0], &high[0], &wanted[0]
    out = found
    with nogil:
        status = fp_take_place(from_, m, &slices, after, &out[0])
    check(status, "look-up")
    return found
