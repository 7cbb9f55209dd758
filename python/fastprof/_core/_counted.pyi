import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

def counted(
    kernels: tuple[_Int32, _Int32, _Int32, _Int64],
    pieces: tuple[_Int32, _Int32, _Int64],
    is_counted: npt.NDArray[np.uint8],
    n_groups: int,
) -> tuple[tuple[_Int64, _Int64, _Int64, _Int32], tuple[_Int32, _Int32, _Int64]]: ...
