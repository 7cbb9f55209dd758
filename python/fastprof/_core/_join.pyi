import numpy as np
import numpy.typing as npt

from fastprof._core._column import Filter
from fastprof._core._pools import Keys

class Join:
    def __init__(self, process: npt.NDArray[np.int32], number: npt.NDArray[np.int64]) -> None: ...
    def offer(self, process: npt.NDArray[np.int32], number: npt.NDArray[np.int64]) -> None: ...
    def rows(
        self, process: npt.NDArray[np.int32], number: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]: ...
    def matching(
        self, process: npt.NDArray[np.int32], number: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]: ...

class LaunchFilter(Filter):
    def __init__(
        self,
        join: Join,
        processes: Keys,
        shift: int,
        names: npt.NDArray[np.int64] | None = None,
    ) -> None: ...
    @property
    def n_unmatched(self) -> int: ...
