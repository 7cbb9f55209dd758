import numpy as np
import numpy.typing as npt

_Uint8 = npt.NDArray[np.uint8]
_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

NONE: int
FORWARD: int
BACKWARD: int
LABEL_TORCH: int
LABEL_BACKWARD: int
LABEL_NODE: int
LABEL_RECOMPUTE: int

def roles(
    label: _Int32,
    thread: _Int32,
    frame: _Int32,
    seq: _Int64,
    bits: _Uint8,
    parent: _Int32,
    in_backward: _Uint8,
    n_threads: int,
) -> _Uint8: ...
def forward_of(role: _Uint8, seq: _Int64, scope: _Int32) -> _Int32: ...
def calls(
    parent: _Int32, range_of_frame: _Int32, role: _Uint8, seq: _Int64
) -> tuple[_Int32, _Uint8]: ...
def meanings(
    call: _Int32,
    range_of_frame: _Int32,
    in_backward: _Uint8,
    forward: _Int32,
    frame_of_range: _Int32,
) -> _Int32: ...
def numbers(
    parent: _Int32,
    range_of_frame: _Int32,
    backward: _Uint8,
    seq: _Int64,
    label: _Int32,
    is_torch: _Uint8,
    frame: _Int32,
    inside: _Uint8,
    depth: int,
) -> tuple[_Int64, _Int64, _Int64]: ...
def sub(process: _Int32, seq: _Int64, operator_id: _Int32, n_processes: int) -> _Int32: ...
