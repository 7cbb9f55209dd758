from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]

def build(
    call_start: _Int64,
    call_end: _Int64,
    call_thread: _Int32,
    call_lane: _Int32,
    call_kind: npt.NDArray[np.uint8],
    process_of_thread: _Int32,
    start: _Int64,
    duration: _Int64,
    lane: _Int32,
    call: _Int32,
    name: _Int32,
    process_of_lane: _Int32,
    gpu_of_lane: _Int32,
    n_names: int,
    n_processes: int,
    begin: int,
) -> tuple[dict[str, Any], dict[str, int]]: ...

class Replay:
    def __init__(
        self,
        source: Sequence[_Int32],
        lag: Sequence[_Int32],
        before: _Int64,
        duration: _Int64,
        full: _Int64 | None = None,
    ) -> None: ...
    def run(
        self,
        step: _Int32,
        n_steps: int,
        group: _Int32 | None = None,
        factor: npt.NDArray[np.float64] | None = None,
        part: _Int32 | None = None,
        begin: _Int64 | None = None,
        out: _Int64 | None = None,
    ) -> tuple[_Int64, _Int64]: ...
    def path(self, time: _Int64, node: int, start: int) -> npt.NDArray[np.void]: ...
    def slack(self, time: _Int64, slack: _Int64) -> None: ...
