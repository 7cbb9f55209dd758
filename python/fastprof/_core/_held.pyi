import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

class Launched:
    def __init__(
        self,
        work: tuple[_Int64, _Int64, _Int32],
        begin: int,
        arrivals: tuple[_Int64, _Int64, _Int32],
        launches: tuple[_Int64, _Int32, _Int32, _Int64],
    ) -> None: ...
    def sums(self, time: _Int64) -> _Int64: ...
    def find(
        self,
        time: _Int64,
        sums: _Int64,
        stretched: npt.NDArray[np.float64],
        latency_ns: int,
        slow_ns: int,
    ) -> tuple[_Int64, _Int32, _Int64, _Int64, _Int64, _Int64]: ...
    def waiting(self, time: _Int64) -> _Int64: ...
