from collections.abc import Callable
from types import FrameType

def describe_stacks_with(
    stack_text: Callable[[FrameType], str],
    functions_text: Callable[[str, FrameType], str] | None,
) -> None: ...
