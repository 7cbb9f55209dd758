from types import TracebackType

LARGE: int

class Reused:
    def __enter__(self) -> Reused: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def held(self) -> tuple[int, int, int]: ...
