import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

class Groups:
    def __init__(
        self, group: _Int32, n_groups: int, cell: _Int32, weight: _Int64, n_cells: int
    ) -> None: ...
    def share(self, total: _Int64, out: _Int64) -> None: ...
    def add_up(self, total: _Int64, shares: _Int64) -> tuple[int, int]: ...

def pairs(
    group: _Int32, n_groups: int, cell: _Int32, part: npt.NDArray[np.int8], n_parts: int
) -> tuple[_Int32, int]: ...
def too_fast(
    bytes_: _Int64,
    duration: _Int64,
    group: _Int32,
    n_groups: int,
    memory: _Int32,
    bandwidth: npt.NDArray[np.float64],
    most: float,
) -> npt.NDArray[np.bool_]: ...
def ordinal(group: _Int32, n_groups: int) -> _Int32: ...
