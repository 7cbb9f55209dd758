import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_UInt8 = npt.NDArray[np.uint8]
_Float64 = npt.NDArray[np.float64]

def refine(cell: _Int32, n_cells: int, ids: _Int32, n_ids: int) -> tuple[_Int32, _Int32]: ...
def busy(
    start: _Int64,
    duration: _Int64,
    ids: _Int32,
    group: _Int32,
    n_groups: int,
    mask: _UInt8 | None = None,
) -> tuple[_Int64, _Int64, _Int64]: ...
def overlaps(start: _Int64, duration: _Int64, ids: _Int32, n_ids: int) -> tuple[int, int]: ...
def short_time(
    cell: _Int32,
    duration: _Int64,
    flops: _Int64,
    moved: _Int64,
    is_small: _UInt8,
    per_flop: _Float64,
    per_byte: _Float64,
    longest: int,
    least: float,
) -> _Int64: ...
