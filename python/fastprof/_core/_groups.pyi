import numpy as np
import numpy.typing as npt

_Int64 = npt.NDArray[np.int64]

class GroupStats:
    count: _Int64
    sum: _Int64
    min: _Int64
    max: _Int64
    squares: npt.NDArray[np.float64]
    def __init__(
        self, group: npt.NDArray[np.int32], value: _Int64, n_groups: int, none: int = -1
    ) -> None: ...
    def median(self) -> npt.NDArray[np.float64]: ...

def sum_where(
    group: npt.NDArray[np.int32], value: _Int64, mask: npt.NDArray[np.uint8] | None, n_groups: int
) -> _Int64: ...
def distinct_ids(
    group: npt.NDArray[np.int32], ids: npt.NDArray[np.int32], n_groups: int, n_ids: int
) -> tuple[_Int64, npt.NDArray[np.int32]]: ...
