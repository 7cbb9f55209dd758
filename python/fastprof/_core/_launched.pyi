from typing import Final

import numpy as np
import numpy.typing as npt

NO_GROUP: Final[int]
OTHER: Final[int]

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

def launched(
    kernels: tuple[_Int32, _Int32, _Int64],
    calls: tuple[_Int64, _Int64],
    n_groups: int,
    starved_ns: int,
) -> tuple[_Int64, _Int64, _Int64, _Int64]: ...
