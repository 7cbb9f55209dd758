import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

class Parts:
    def __init__(
        self,
        group: _Int32,
        n_groups: int,
        part: npt.NDArray[np.int8],
        cell: _Int32,
        weight: _Int64,
        total: _Int64,
    ) -> None: ...
    def share(self, part: int, out: _Int64) -> None: ...
    def add_up(self, part: int, shares: _Int64) -> tuple[int, int]: ...

def ordinal(group: _Int32, n_groups: int) -> _Int32: ...
