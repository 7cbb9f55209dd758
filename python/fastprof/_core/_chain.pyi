import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

def entries(
    work: tuple[_Int64, _Int64, _Int32],
    idle: tuple[_Int32, _Int32, _Int64],
    begin: int,
    time: _Int64,
    n_labels: int,
) -> tuple[_Int64, _Int32, _Int64, _Int32]: ...
