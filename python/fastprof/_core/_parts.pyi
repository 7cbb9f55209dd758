from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_PARTS: int
WHOLE: int
BESIDE: int
ALL_PARTS: int
VARIANTS: int

def find(
    kernels: Sequence[npt.NDArray[Any]], tables: Sequence[npt.NDArray[Any]]
) -> npt.NDArray[np.int32]: ...
