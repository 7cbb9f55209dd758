from collections.abc import Callable, Sequence
from typing import Any

import apsw
import numpy.typing as npt

from fastprof._column import Filter, _Column

class Reader:
    def __init__(self, connection: apsw.Connection) -> None: ...
    def floor(self, sql: str, what: str) -> int: ...
    def scan(
        self,
        sql: str,
        columns: Sequence[_Column],
        capacity: int,
        what: str,
        keep: Filter | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> dict[str, npt.NDArray[Any]]: ...
