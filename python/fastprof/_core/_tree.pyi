import numpy as np
import numpy.typing as npt

class Tree:
    def read(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
