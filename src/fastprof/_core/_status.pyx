"""Convert status codes of the C core to exceptions of fastprof.errors."""
from fastprof._core.fp_status cimport (
    FP_E_INDEX, FP_E_MEMORY, FP_E_ORDER, FP_E_RANGE, FP_E_SQLITE, FP_E_SYNTAX, FP_E_TOO_MANY,
    fp_status,
)

from fastprof.errors import BadInputError, InternalError

_CAUSE = {
    FP_E_SQLITE: (BadInputError, "SQLite failed to read on"),
    FP_E_RANGE: (BadInputError, "a number is out of range for its column"),
    FP_E_TOO_MANY: (BadInputError, "more than 2147483647 entries"),
    FP_E_ORDER: (InternalError, "the input is not sorted as required"),
    FP_E_INDEX: (InternalError, "an index is out of bounds"),
    FP_E_SYNTAX: (BadInputError, "not a dict line"),
}


cdef int check(fp_status status, str what) except -1:
    """Raise if the status is an error; `what` names the operation and its object in the message."""
    if status >= 0:
        return 0
    if status == FP_E_MEMORY:
        raise MemoryError(f"{what}: out of memory")
    kind, cause = _CAUSE.get(status, (InternalError, f"status {<int>status}"))
    raise kind(f"{what}: {cause}")
