from collections.abc import Callable
from typing import Any

from fastprof._core._hooks import Wrapped

class Around(Wrapped):
    def __init__(
        self,
        function: Callable[..., Any],
        path: str,
        before: Callable[[Any], None],
        after: Callable[[Any], None],
        set_eval_frame: Callable[[Any], Any],
    ) -> None: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
