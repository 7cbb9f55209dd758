"""Addresses of arrays for the C core, and checks of what it is given."""
from libc.stdint cimport int32_t, int64_t, uint8_t


cdef inline int require(bint condition, str what) except -1:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(what)
    return 0


# The address of an array; NULL if it is empty.
cdef inline const uint8_t *pointer8(const uint8_t[::1] array) noexcept nogil:
    return &array[0] if array.shape[0] else NULL


cdef inline const int32_t *pointer32(const int32_t[::1] array) noexcept nogil:
    return &array[0] if array.shape[0] else NULL


cdef inline const int64_t *pointer64(const int64_t[::1] array) noexcept nogil:
    return &array[0] if array.shape[0] else NULL


# The address of an array to write to, which may not be empty.
cdef inline int32_t *written32(int32_t[::1] array) noexcept nogil:
    return &array[0]


cdef inline int64_t *written64(int64_t[::1] array) noexcept nogil:
    return &array[0]


cdef inline const int32_t *numbers(const int32_t[::1] array, Py_ssize_t n) except? NULL:
    """The address of an array of n numbers; other lengths raise ValueError."""
    if array.shape[0] != n:
        raise ValueError(f"expected {n} values, found {array.shape[0]}")
    return pointer32(array)


cdef inline int require_equal(tuple lengths) except -1:
    """Raise ValueError unless all lengths are the same."""
    if len(set(lengths)) > 1:
        raise ValueError(f"lengths differ: {', '.join(map(str, lengths))}")
    return 0
