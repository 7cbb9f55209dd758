"""Annotation that runs inside the user's program. Only this package imports torch."""

import re

import torch

from fastprof.errors import MissingDependencyError

_OLDEST = (2, 3)

TORCH = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))
if TORCH < _OLDEST:
    raise MissingDependencyError(
        f"annotating and recording need torch {'.'.join(map(str, _OLDEST))} or newer, found "
        f"{torch.__version__}: upgrade torch; reading traces needs none"
    )
