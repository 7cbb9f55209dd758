from types import FrameType
from typing import Any

def self_of(frame: FrameType) -> Any: ...
