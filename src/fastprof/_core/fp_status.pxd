cdef extern from "base/fp_status.h":
    ctypedef enum fp_status:
        FP_OK
        FP_MORE
        FP_E_MEMORY
        FP_E_SQLITE
        FP_E_RANGE
        FP_E_TOO_MANY
        FP_E_ORDER
        FP_E_INDEX
        FP_E_SYNTAX
        FP_E_UNUSUAL
