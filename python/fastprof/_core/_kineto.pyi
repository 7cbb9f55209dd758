from typing import Any

import numpy as np
import numpy.typing as npt

NONE: int
TEXT_PLACE: int
TABLES: tuple[str, ...]
POOLS: tuple[str, ...]
COLUMNS: dict[str, dict[str, tuple[type[np.generic], tuple[int, ...]]]]

class KinetoReader:
    name: str
    is_trace: bool
    is_whole: bool
    has_events: bool
    lost: tuple[int, int]
    def __init__(self, name: str) -> None: ...
    def feed(self, block: npt.NDArray[np.uint8] | bytes) -> int: ...
    def counts(self) -> dict[tuple[str | None, str | None], int]: ...
    def texts(self, pool: str) -> list[str]: ...
    def finish(self) -> dict[str, dict[str, npt.NDArray[Any]]]: ...
