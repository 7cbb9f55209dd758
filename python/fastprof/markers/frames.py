"""Source lines of a call stack: which are the user's own."""

from __future__ import annotations

import re

_LIBRARY_FRAME = re.compile(
    r"/torch/nn/modules/|/torch/nn/functional\.py:|/torch/tensor\.py:|/torch/_tensor\.py:"
    r"|/torch/autograd/|/torch/_jit_internal\.py:|/torch/_utils\.py:|/torch/optim/"
    r"|/apex/optimizers/|/pyprof/nvtx/|/fastprof/annotate/|/nvmarker\.py:"
)


def is_library_frame(frame: str) -> bool:
    """Whether a frame is torch's own, or that of the annotator, rather than the user's."""
    return _LIBRARY_FRAME.search("/" + frame.replace("\\", "/") + ":") is not None
