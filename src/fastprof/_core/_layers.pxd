"""Functions of open layers that the hooks call."""


cdef int follow() except -1
cdef int uncover() except -1
