from collections.abc import Mapping, Set

import numpy as np
import numpy.typing as npt

NONE: int
ROOT: str

class RecordReader:
    name: str
    is_trace: bool
    is_whole: bool
    is_damaged: bool
    def __init__(
        self, name: str, root: str, tables: Mapping[str, Mapping[str, str]], texts: Set[str]
    ) -> None: ...
    def feed(self, block: npt.NDArray[np.uint8] | bytes) -> int: ...
    def texts(self) -> list[str]: ...
    def finish(self) -> dict[str, dict[str, npt.NDArray[np.int64]]]: ...
