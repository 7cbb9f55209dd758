from fastprof._core.fp_status cimport fp_status

cdef int check(fp_status status, str what) except -1
