from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Item = TypeVar("_Item", bound=np.generic)

def take(
    values: npt.NDArray[_Item],
    index: npt.NDArray[np.int32],
    none: int = -1,
    out: npt.NDArray[_Item] | None = None,
) -> npt.NDArray[_Item]: ...
def objects(values: list[Any], index: npt.NDArray[np.int32]) -> npt.NDArray[np.object_]: ...
def distinct(
    index: npt.NDArray[np.int32],
    n_values: int,
    inner: npt.NDArray[np.int32] | None = None,
    outer: npt.NDArray[np.int32] | None = None,
) -> tuple[list[int], npt.NDArray[np.int32]]: ...
def where(flags: npt.NDArray[np.bool_], index: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]: ...
def ranks(index: npt.NDArray[np.int32], n_values: int) -> npt.NDArray[np.int32]: ...
def without(items: npt.NDArray[_Item], rows: npt.NDArray[np.int64]) -> npt.NDArray[_Item]: ...
def ascending(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
def place(
    values: npt.NDArray[np.int64],
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.int64],
    after: bool = False,
) -> npt.NDArray[np.int64]: ...
