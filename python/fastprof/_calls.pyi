import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Uint8 = npt.NDArray[np.uint8]
_Bool = npt.NDArray[np.bool_]

MOST_PARTS: int
WHOLE: int
BESIDE: int

def find(
    frame: _Int32,
    meaning: _Int32,
    label: _Int32,
    picked: _Int32,
    backward: _Int32,
    instance: _Int32,
    known: _Uint8,
    unknown_backward: _Uint8,
) -> tuple[_Int32, _Bool, _Int32, int]: ...
def parts(
    row: _Int32,
    info: _Int32,
    group: _Int32,
    n_groups: int,
    part_of: npt.NDArray[np.int8],
    sure: _Bool,
    main: _Bool,
    costed: _Bool,
    whole_always: _Bool,
    other: _Bool,
) -> npt.NDArray[np.int8]: ...
