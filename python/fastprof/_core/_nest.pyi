import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

def order(start: _Int64, end: _Int64) -> _Int32 | None: ...
def sweep(
    start: _Int64,
    end: _Int64,
    thread: _Int32,
    point_start: _Int64,
    point_thread: _Int32,
    n_threads: int,
    what: str = "ranges",
) -> tuple[_Int32, _Int32, _Int32, _Int32]: ...

class Tree:
    def __init__(self, start: _Int64, end: _Int64) -> None: ...
    def open_at(self, t: int) -> _Int32: ...
    def nodes(self, label: _Int32, t: _Int64) -> tuple[_Int32, _Int32, _Int32]: ...
