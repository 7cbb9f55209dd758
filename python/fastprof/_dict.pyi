from typing import Any

import numpy as np
import numpy.typing as npt

INT_KEYS: tuple[str, ...]
TRIPLE_KEYS: tuple[str, ...]
LIST_KEYS: tuple[str, ...]
TEXT_KEYS: tuple[str, ...]

class DictReader:
    def __init__(self, name: str) -> None: ...
    def feed(self, block: npt.NDArray[np.uint8] | bytes, *, is_end: bool = False) -> int: ...
    def finish(self) -> dict[str, Any]: ...
    def texts(self, key: str) -> list[tuple[bytes, int]]: ...
