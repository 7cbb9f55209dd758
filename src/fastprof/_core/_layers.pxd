"""What the hooks share with the layers that are open around their calls."""


cdef int follow() except -1
cdef int uncover() except -1
