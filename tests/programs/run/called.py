"""Records which modules a program calls, where CALLED_MODULES names a file; else does nothing."""

import json
import os

from torch import nn

_PATH = os.environ.get("CALLED_MODULES")
_CALLED = []

if _PATH:
    nn.modules.module.register_module_forward_pre_hook(lambda each, _: _CALLED.append(each))


def write_called(model):
    """Write the names of the called submodules of the outermost module."""
    if _PATH:
        ids = {id(each) for each in _CALLED}
        names = [name for name, each in model.named_modules() if name and id(each) in ids]
        with open(_PATH, "w") as file:
            json.dump(names, file)
