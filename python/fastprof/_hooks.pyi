from collections.abc import Callable
from types import FrameType
from typing import Any

class Marker:
    text: str
    def __init__(self, text: str, passing: bool = False) -> None: ...

class Opened:
    def close(self) -> None: ...

class Wrapped:
    __wrapped__: Callable[..., Any]
    mod: str
    op: str
    def __init__(
        self,
        function: Callable[..., Any],
        mod: str,
        op: str,
        path: str = "",
        describe: Callable[[tuple[Any, ...]], Marker | None] | None = None,
        overloads: bool = False,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def connect(
    domain: Any,
    profiler: dict[str, Any],
    records: Callable[[], bool],
    recorder: Callable[[str], Any],
    recordable: Callable[[str], str],
    push_plain: Callable[[str], Any] | None = None,
) -> None: ...
def describe_with(
    argument_text: Callable[[str, str, tuple[Any, ...], dict[str, Any]], str | None],
    stack_text: Callable[[FrameType], str],
    functions_text: Callable[[str, FrameType], str] | None,
    compiling: Callable[[], Any],
    overloaded: Callable[..., bool],
    call_overloaded: Callable[..., Any],
    tensor: type,
    parameter: type,
    named: tuple[type, ...],
) -> None: ...
def annotate(on: bool) -> None: ...
def listening() -> bool: ...
def open_range(marker: Marker) -> Opened | None: ...
