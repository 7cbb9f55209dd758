from collections.abc import Callable
from typing import Any

from fastprof._core._countdown import Countdown
from fastprof._core._hooks import Wrapped

class Around(Wrapped):
    def __init__(
        self,
        function: Callable[..., Any],
        path: str,
        before: Callable[[Any], None] | None,
        after: Callable[[Any], None] | None,
        set_eval_frame: Callable[[Any], Any],
        countdown: Countdown | None = None,
    ) -> None: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
