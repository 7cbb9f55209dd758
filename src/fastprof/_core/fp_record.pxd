cdef extern from "scan/fp_record.h":
    int FP_RECORD_COLUMNS
