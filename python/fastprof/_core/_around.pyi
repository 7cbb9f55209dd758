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

class ReportedCalls:
    def __init__(
        self,
        traced: Callable[..., Any],
        report: Callable[[Any], None],
        countdown: Countdown,
        set_eval_frame: Callable[[Any], Any],
    ) -> None: ...
    def add(self, module: Any) -> None: ...
    def clear(self) -> None: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __set__(self, instance: Any, value: Any, /) -> None: ...
