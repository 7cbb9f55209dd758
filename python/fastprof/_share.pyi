from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

def shares(
    group: npt.NDArray[np.int32],
    weight: npt.NDArray[np.int64],
    totals: Sequence[npt.NDArray[np.int64]],
    n_groups: int,
) -> list[npt.NDArray[np.int64]]: ...
def ordinal(group: npt.NDArray[np.int32], n_groups: int) -> npt.NDArray[np.int32]: ...
