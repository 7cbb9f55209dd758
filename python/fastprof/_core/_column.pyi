from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import Keys, Names

I64: int
I32: int
KEY: int
TEXT: int
LENGTH: int
RANGE: int
MESSAGE: int
TOGETHER: str

# Name, kind, none, pool, shift, whether it may be null, whether its values are kept together.
_Column = tuple[str, int, int, Keys | Names | None, int, bool, bool]

class Filter: ...

class KnownKeys(Filter):
    def __init__(self, keys: Keys) -> None: ...

class Among(Filter):
    def __init__(self, numbers: Collection[int]) -> None: ...

class Rows: ...

class Room:
    def __init__(self, columns: Sequence[_Column], capacity: int) -> None: ...
    def __len__(self) -> int: ...
    def columns(self, further: int = 0) -> dict[str, npt.NDArray[Any]]: ...
    def together(self) -> dict[str, npt.NDArray[Any]]: ...

def split_range_names(
    pool: Names, texts: Sequence[str | None]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
