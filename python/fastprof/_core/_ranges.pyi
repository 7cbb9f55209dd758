from collections.abc import Callable
from typing import Any

class Marker:
    text: str
    def __init__(self, text: str, passing: bool = False) -> None: ...

class Opened:
    def close(self) -> None: ...

def connect(
    domain: Any,
    profiler: dict[str, Any],
    records: Callable[[], bool],
    recorder: Callable[[str], Any],
    recordable: Callable[[str], str],
    push_plain: Callable[[str], Any] | None = None,
) -> None: ...
def rehearse(on: bool) -> None: ...
