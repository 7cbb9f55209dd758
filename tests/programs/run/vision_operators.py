"""Defines torchvision's operators, which its wheel for CUDA cannot load on a CPU build of torch."""

import importlib.util
import re
from pathlib import Path

import torch

_ROOT = Path(importlib.util.find_spec("torchvision").submodule_search_locations[0])
_FAKES = re.compile(r'register_(?:fake|meta)\("(?:torchvision::)?(\w+)"')
_LIBRARY = torch.library.Library("torchvision", "DEF")
for _name in sorted(set(_FAKES.findall((_ROOT / "_meta_registrations.py").read_text()))):
    _LIBRARY.define(f"{_name}(Tensor x) -> Tensor")
