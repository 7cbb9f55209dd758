from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

class Fields:
    n_rows: int
    def __init__(self, n_rows: int) -> None: ...
    def add_numbers(
        self, tag: bytes, values: _Int32 | _Int64, *, none: int, outer: bytes = b""
    ) -> None: ...
    def add_fixed(
        self, tag: bytes, values: _Int64, *, none: int = -1, offsets: _Int64 | None = None
    ) -> None: ...
    def add_texts(self, ids: _Int32, texts: Sequence[bytes]) -> None: ...

class PacketWriter:
    n_rows: int
    def __init__(
        self, head: bytes, origin: int, packets: list[tuple[_Int64, bytes, Fields]]
    ) -> None: ...
    def block(self) -> PacketBlock: ...

class PacketBlock:
    def __init__(self, rows: PacketWriter) -> None: ...
    def fill(self, first: int, end: int) -> int: ...
    def filled(self) -> memoryview: ...

def lanes(
    start: _Int64, end: _Int64, track: _Int32, n_tracks: int, may_nest: bool
) -> tuple[_Int32, _Int32]: ...
