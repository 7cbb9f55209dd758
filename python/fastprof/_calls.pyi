import numpy as np
import numpy.typing as npt

MOST_PARTS: int
WHOLE: int
BESIDE: int

def find(
    frame: npt.NDArray[np.int32],
    meaning: npt.NDArray[np.int32],
    label: npt.NDArray[np.int32],
    picked: npt.NDArray[np.int32],
    backward: npt.NDArray[np.int32],
    instance: npt.NDArray[np.int32],
    known: npt.NDArray[np.uint8],
    unknown_backward: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], npt.NDArray[np.int32], int]: ...
def parts(
    row: npt.NDArray[np.int32],
    info: npt.NDArray[np.int32],
    group: npt.NDArray[np.int32],
    n_groups: int,
    part_of: npt.NDArray[np.int8],
    sure: npt.NDArray[np.bool_],
    main: npt.NDArray[np.bool_],
    costed: npt.NDArray[np.bool_],
    whole_always: npt.NDArray[np.bool_],
    other: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int8]: ...
