from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Int = TypeVar("_Int", np.int32, np.int64)

def take(
    values: npt.NDArray[_Int], index: npt.NDArray[np.int32], none: int = -1
) -> npt.NDArray[_Int]: ...
def distinct(
    index: npt.NDArray[np.int32], n_values: int
) -> tuple[list[int], npt.NDArray[np.int32]]: ...
