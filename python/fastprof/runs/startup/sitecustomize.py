"""`fastprof run` puts this directory on PYTHONPATH: Python imports this module at startup.

It restores the import path, imports the `sitecustomize` that it hides, and waits for the program to
import torch. It imports nothing else: a program without torch runs as it would without it.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


class _AfterTorch:
    """Finder of torch that starts the recording once torch is imported."""

    def __init__(self) -> None:
        self._is_asked = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of torch, with a loader that calls `_begin`; None for other modules."""
        if name != "torch" or self._is_asked:
            return None
        self._is_asked = True
        try:
            spec = find_spec(name)
        finally:
            self._is_asked = False
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        run = loader.exec_module

        def run_and_begin(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _begin()

        loader.exec_module = run_and_begin
        return spec


def _begin() -> None:
    """Begin to watch the program for its steps; a failure leaves the program unrecorded."""
    try:
        import_module("fastprof.annotate.program.begin").begin()
    except ImportError as error:
        sys.stderr.write(
            f"fastprof: the program is not recorded: {error}; expected fastprof[torch] in the "
            f"environment of {sys.executable}: install it there\n"
        )
    except Exception as error:
        sys.stderr.write(f"fastprof: the program is not recorded: {error}\n")


def _import_hidden() -> None:
    """Import the `sitecustomize` of the user's environment."""
    sys.path[:] = [text for text in sys.path if os.path.abspath(text or ".") != _HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own


if os.environ.get("FASTPROF_RUN"):
    sys.meta_path.insert(0, _AfterTorch())
_import_hidden()
