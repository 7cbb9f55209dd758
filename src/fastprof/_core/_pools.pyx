"""Pools that store distinct texts or numbers once and give them dense ids in insertion order."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_alike cimport FP_ALIKE_SLOTS, fp_alike, fp_alike_column
from fastprof._core.fp_hash cimport fp_hash, fp_hash_move, fp_hash_secret, fp_hash_slot
from fastprof._core.fp_keys cimport (
    fp_keys_count, fp_keys_find, fp_keys_free, fp_keys_intern, fp_keys_intern_pairs, fp_keys_new,
    fp_keys_values,
)
from fastprof._core.fp_names cimport (
    fp_names_bytes, fp_names_count, fp_names_free, fp_names_intern, fp_names_new,
)
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core._status cimport check


cdef enum:
    _MOST_COLUMNS = 32


cdef class Names:
    """A pool of texts (bytes)."""

    def __cinit__(self):
        self.pool = fp_names_new()
        if self.pool is NULL:
            raise MemoryError("out of memory for a pool of names")

    def __dealloc__(self):
        fp_names_free(self.pool)

    def __len__(self):
        return fp_names_count(self.pool)

    def intern(self, bytes text):
        """Return the id of the text, adding the text if it is new."""
        cdef int32_t id = -1
        check(fp_names_intern(self.pool, text, len(text), &id), "names")
        return id

    def adopt(self, Names other):
        """Add all texts of another pool; return their ids in this one, int32 [len(other)]."""
        cdef const int64_t *offsets = NULL
        cdef const char *data = fp_names_bytes(other.pool, &offsets)
        cdef int32_t i, n = fp_names_count(other.pool)
        ids = np.empty(n, np.int32)
        cdef int32_t[::1] id = ids
        if other is self:
            raise ValueError("a pool cannot adopt itself")
        for i in range(n):
            check(fp_names_intern(self.pool, data + offsets[i], offsets[i + 1] - offsets[i],
                                  &id[i]), "names")
        return ids

    def texts(self, int32_t first=0):
        """All texts from id `first` on, as str; invalid UTF-8 becomes U+FFFD."""
        cdef const int64_t *offsets = NULL
        cdef const char *data = fp_names_bytes(self.pool, &offsets)
        cdef int32_t i
        return [
            data[offsets[i]:offsets[i + 1]].decode("utf-8", "replace")
            for i in range(first, fp_names_count(self.pool))
        ]

    def blobs(self):
        """All texts as they are, bytes."""
        cdef const int64_t *offsets = NULL
        cdef const char *data = fp_names_bytes(self.pool, &offsets)
        cdef int32_t i
        return [data[offsets[i]:offsets[i + 1]] for i in range(fp_names_count(self.pool))]


cdef class Keys:
    """A pool of 64-bit numbers."""

    def __cinit__(self):
        self.pool = fp_keys_new()
        if self.pool is NULL:
            raise MemoryError("out of memory for a pool of keys")

    def __dealloc__(self):
        fp_keys_free(self.pool)

    def __len__(self):
        return fp_keys_count(self.pool)

    def intern(self, int64_t key):
        """Return the id of the number, adding the number if it is new."""
        cdef int32_t id = -1
        check(fp_keys_intern(self.pool, key, &id), "keys")
        return id

    def adopt(self, Keys other):
        """Add all numbers of another pool; return their ids in this one, int32 [len(other)]."""
        cdef int32_t i, n = fp_keys_count(other.pool)
        ids = np.empty(n, np.int32)
        cdef int32_t[::1] id = ids
        for i in range(n):
            check(fp_keys_intern(self.pool, fp_keys_values(other.pool)[i], &id[i]), "keys")
        return ids

    def find(self, int64_t key):
        """Id of the number, or -1."""
        return fp_keys_find(self.pool, key)

    def values(self):
        """A copy of all numbers in order of id, int64 [n]."""
        cdef int32_t n = fp_keys_count(self.pool)
        out = np.empty(n, np.int64)
        cdef int64_t[::1] view = out
        cdef int32_t i
        for i in range(n):
            view[i] = fp_keys_values(self.pool)[i]
        return out


def pairs(const int32_t[::1] left, const int32_t[::1] right):
    """Number the distinct pairs.

    Parameters
    ----------
    left, right : int32 [n]

    Returns
    -------
    id : int32 [n]
        The number of each pair, in order of first appearance.
    first : int32 [distinct pairs]
        The first row with each id.
    """
    cdef int64_t n = left.shape[0]
    if right.shape[0] != n:
        raise ValueError(f"expected {n} numbers on the right, found {right.shape[0]}")
    cdef Keys pool = Keys()
    cdef fp_status status
    ids = np.empty(n, np.int32)
    cdef int32_t[::1] id = ids
    if n == 0:
        return ids, ids
    with nogil:
        status = fp_keys_intern_pairs(pool.pool, &left[0], &right[0], n, &id[0])
    check(status, "pairs")
    return ids, _first_rows(id, len(pool))


def _first_rows(const int32_t[::1] id, int32_t n_ids):
    """The first row with each id, int32 [ids]; ids are in order of first appearance."""
    cdef int32_t i, n_found = 0
    out = np.empty(n_ids, np.int32)
    cdef int32_t[::1] first = out
    for i in range(<int32_t>id.shape[0]):
        if id[i] == n_found:
            first[n_found] = i
            n_found += 1
    return out


def alike(columns):
    """Number the distinct rows of several columns.

    Parameters
    ----------
    columns : list of arrays [n] or [n, sides]
        Numbers, C-contiguous; at most 32 columns.

    Returns
    -------
    id : int32 [n]
        The distinct row that each row equals, numbered in order of first appearance.
    first : int32 [distinct rows]
        The first row with each id.
    """
    cdef const uint8_t[:, ::1] column
    cdef fp_alike_column each[_MOST_COLUMNS]
    cdef fp_hash table, larger
    cdef uint64_t[::1] slots, more
    cdef int64_t n = len(columns[0]), next_row = 0
    cdef int k, n_columns = len(columns)
    cdef int32_t n_found = 0
    cdef fp_status status
    require_equal(tuple([len(array) for array in columns]))
    ids, firsts = np.empty(n, np.int32), np.empty(n, np.int32)
    if n == 0:
        return ids, firsts
    if n_columns > _MOST_COLUMNS:
        raise ValueError(f"expected at most {_MOST_COLUMNS} columns, found {n_columns} columns")
    cdef int32_t[::1] id = ids
    cdef int32_t[::1] first = firsts
    for k in range(n_columns):
        column = columns[k].reshape(n, -1).view(np.uint8)
        each[k].values, each[k].size = <const char *>&column[0, 0], column.shape[1]
    slots = np.zeros(FP_ALIKE_SLOTS, np.uint64)
    table.secret = larger.secret = fp_hash_secret(&slots[0])
    while True:
        table.slots, table.n_slots = <fp_hash_slot *>&slots[0], slots.shape[0]
        with nogil:
            status = fp_alike(&table, each, n_columns, n, &next_row, &id[0], &first[0], &n_found)
        if status != FP_MORE:
            break
        more = np.zeros(slots.shape[0] * 4, np.uint64)
        larger.slots, larger.n_slots = <fp_hash_slot *>&more[0], more.shape[0]
        with nogil:
            fp_hash_move(&table, &larger)
        slots = more
    check(status, "alike rows")
    return ids, firsts[:n_found].copy()
