from fastprof._core._c cimport fp_status

cdef int check(fp_status status, str what) except -1
