from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_Brackets = tuple[bytes, bytes, bytes]

class RowWriter:
    n_rows: int
    def __init__(self, n_rows: int, row_end: bytes) -> None: ...
    def add_ints(
        self,
        before: bytes,
        values: npt.NDArray[Any],
        *,
        none: int,
        none_text: bytes,
        width: int = 0,
    ) -> None: ...
    def add_triples(
        self,
        before: bytes,
        values: npt.NDArray[Any],
        *,
        none: int,
        none_text: bytes,
        brackets: _Brackets,
        width: int = 0,
    ) -> None: ...
    def add_texts(
        self, before: bytes, ids: _Int32, texts: Sequence[bytes], *, none_text: bytes
    ) -> None: ...
    def add_singles(
        self,
        before: bytes,
        values: _Int32 | _Int64,
        *,
        none: int,
        none_text: bytes,
        brackets: _Brackets,
        width: int = 0,
    ) -> None: ...
    def add_lists(
        self,
        before: bytes,
        offsets: _Int64,
        values: _Int64,
        *,
        none_text: bytes,
        brackets: _Brackets,
        width: int = 0,
    ) -> None: ...
    def add_seqmarkers(
        self,
        before: bytes,
        frame_of_row: _Int32,
        frame_parent: _Int32,
        range_of_frame: _Int32,
        label_of_range: _Int32,
        seq_of_range: _Int64,
        op_id_of_range: _Int64,
        is_torch: npt.NDArray[np.uint8],
        heads: Sequence[bytes],
        tails: Sequence[bytes],
        *,
        quote: bytes,
    ) -> None: ...
    def block(self) -> Block: ...

class Block:
    def __init__(self, rows: RowWriter) -> None: ...
    def fill(self, first: int, end: int) -> int: ...
    def filled(self) -> memoryview: ...
