from collections.abc import Callable, Sequence

from fastprof._core._column import Filter, Room

HEADER: int
MOST_PLACES: int
OF_ROW_ID: int
ADDED_NULL: int
ADDED_NUMBER: int
ADDED_OTHER: int

class UnusualError(Exception): ...

class File:
    def __init__(self, file: int) -> None: ...

class Table:
    def __init__(self, file: File, root: int) -> None: ...
    def __len__(self) -> int: ...
    def last_row_id(self, leaf: int) -> int: ...
    def scan(
        self,
        room: Room,
        places: Sequence[tuple[int, int, int]],
        first: int,
        last: int,
        what: str,
        keep: Filter | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None: ...
