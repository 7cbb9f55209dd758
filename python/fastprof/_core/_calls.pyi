from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_Uint8 = npt.NDArray[np.uint8]
_Uint16 = npt.NDArray[np.uint16]
_Bool = npt.NDArray[np.bool_]

KNOWN: int
UNKNOWN_BACKWARD: int
FAMILY: int
GRADIENT: int
MOVES: int
BIAS: int
BIAS_BACKWARD: int
MATRICES: int
FORMULA: int
ENGINE: int
NODE: int
FITS: int
SOME_TAKEN: int
ALL_TAKEN: int

def outside(parent: _Int32, label: _Int32, bits: _Uint8) -> _Bool: ...
def instances(backward: _Int32, meaning: _Int32, picked: _Int32) -> _Int32: ...
def find(
    frame: _Int32,
    meaning: _Int32,
    frames: Sequence[_Int32],
    says: _Uint16,
    labels: Sequence[_Int32],
    outside: _Bool | None = None,
) -> tuple[tuple[_Int32, _Bool, _Bool], _Int32, _Int32, _Uint8, _Int32]: ...
def following(
    launch: _Int32, thread: _Int32, start: _Int64, n_threads: int, rows: _Int64
) -> _Int64 | None: ...
