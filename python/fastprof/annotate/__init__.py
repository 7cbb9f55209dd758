"""Annotates a running PyTorch program: the only room that imports torch and nvtx."""

from fastprof.errors import MissingDependencyError

try:
    import nvtx  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        f"annotating a program needs torch and nvtx, and {error.name or error} cannot be imported."
        " Install torch as its site says, then: pip install 'fastprof[torch]'"
    ) from error
