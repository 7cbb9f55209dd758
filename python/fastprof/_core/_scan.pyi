from collections.abc import Callable

import apsw

from fastprof._core._column import Filter, Room

class Reader:
    def __init__(self, connection: apsw.Connection) -> None: ...
    def scan(
        self,
        sql: str,
        room: Room,
        what: str,
        keep: Filter | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None: ...
