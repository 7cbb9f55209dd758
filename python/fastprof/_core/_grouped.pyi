import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

def by_thread(
    thread: _Int32, start: _Int64, end: _Int64 | None, n_threads: int
) -> tuple[_Int64, _Int64, _Int64, _Int64]: ...
def united(
    thread: _Int32,
    start: _Int64,
    end: _Int64,
    group: _Int32,
    n_groups: int,
    label: _Int32 | None = None,
    wanted: npt.NDArray[np.bool_] | None = None,
) -> tuple[_Int64, _Int64, _Int64]: ...
def overlapping(
    start: _Int64,
    end: _Int64,
    windows: tuple[_Int64, _Int64],
    label: _Int32 | None = None,
    wanted: npt.NDArray[np.bool_] | None = None,
) -> _Int64: ...
