from collections.abc import Callable
from typing import Any

from fastprof._core._ranges import Marker

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
        unless: Callable[[tuple[Any, ...], dict[str, Any]], bool] | None = None,
        reads: bool = False,
        named: Callable[[Any], tuple[str, str] | None] | None = None,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __copy__(self) -> Wrapped: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Wrapped: ...

class Binding(Wrapped):
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...

def describe_with(
    argument_text: Callable[[str, str, tuple[Any, ...], dict[str, Any]], str | None],
    compiling: Callable[[], Any],
    overloaded: Callable[..., bool],
    hand_over: Callable[[Wrapped, tuple[Any, ...], dict[str, Any]], Any],
    in_mode: Callable[[], bool],
    aside: Callable[[], Any],
    tensor: type,
    parameter: type,
    named: tuple[type, ...],
) -> None: ...
def annotate(on: bool) -> bool: ...
