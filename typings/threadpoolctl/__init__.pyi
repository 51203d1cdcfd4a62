from types import TracebackType
from typing import Any

class threadpool_limits:
    def __init__(self, limits: int | None = None, user_api: str | None = None) -> None: ...
    def __enter__(self) -> threadpool_limits: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class ThreadpoolController:
    lib_controllers: list[Any]

def threadpool_info() -> list[dict[str, Any]]: ...
