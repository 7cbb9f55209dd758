import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

class Sweep:
    def __init__(
        self,
        start: _Int64,
        end: _Int64,
        kind: npt.NDArray[np.uint8],
        bounds: _Int64 | None = None,
    ) -> None: ...
    def until(self, time: _Int64, bounds: _Int64 | None = None) -> _Int64: ...
    def gaps(self) -> tuple[_Int64, _Int64, _Int32, _Int32]: ...
    def idle(
        self,
        first: int | _Int64,
        window_start: _Int64,
        window_end: _Int64,
        short_ns: int,
        bounds: _Int64 | None = None,
    ) -> tuple[_Int64, _Int64, _Int32, _Int32, _Int32, _Int64]: ...
    def own(self) -> _Int64: ...
    def own_in(self, window_start: _Int64, window_end: _Int64) -> tuple[_Int32, _Int32, _Int64]: ...
