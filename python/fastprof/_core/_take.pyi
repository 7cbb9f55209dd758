from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Int = TypeVar("_Int", np.int32, np.int64)
_Item = TypeVar("_Item", bound=np.generic)

def take(
    values: npt.NDArray[_Int], index: npt.NDArray[np.int32], none: int = -1
) -> npt.NDArray[_Int]: ...
def distinct(
    index: npt.NDArray[np.int32], n_values: int
) -> tuple[list[int], npt.NDArray[np.int32]]: ...
def without(items: npt.NDArray[_Item], rows: npt.NDArray[np.int64]) -> npt.NDArray[_Item]: ...
