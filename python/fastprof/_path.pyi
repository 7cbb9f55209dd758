import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Uint8 = npt.NDArray[np.uint8]

NO_RANK: int
SAYS_BACKWARD: int
SAYS_FORWARD: int
SAYS_TORCH: int
NOWHERE: int
FORWARD: int
BACKWARD: int

def nodes(
    parent: _Int32, label: _Int32, n_labels: int, wanted: _Uint8 | None = None
) -> tuple[_Int32, _Int32, _Int32]: ...
def innermost(parent: _Int32, own: _Int32) -> _Int32: ...
def best(parent: _Int32, label: _Int32, rank: _Uint8) -> _Int32: ...
def directions(parent: _Int32, label: _Int32, says: _Uint8) -> _Uint8: ...
def sums(parent: _Int32, own: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
def depth(parent: _Int32) -> int: ...
