"""Runs work in advance: hands of a collection, chunks of a distillation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from typing import TypeVar

Made = TypeVar("Made")


def in_order(submit: Callable[[int], Future[Made]], numbers: Iterable[int], ahead: int) -> Generator[Made, None, None]:
    """Yield the result of ``submit(number)`` for each number, in order. At most ``ahead`` of them are made in advance.

    Closed early, or if some work fails, it cancels what has not started.
    """
    waiting: deque[Future[Made]] = deque()
    try:
        for number in numbers:
            waiting.append(submit(number))
            if len(waiting) == ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
