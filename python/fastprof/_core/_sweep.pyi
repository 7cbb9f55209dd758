import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

class Sweep:
    def __init__(self, start: _Int64, end: _Int64, kind: npt.NDArray[np.uint8]) -> None: ...
    def until(self, time: _Int64) -> _Int64: ...
    def gaps(self) -> tuple[_Int64, _Int64, _Int32, _Int32]: ...
