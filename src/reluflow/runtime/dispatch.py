"""One name for two functions: the code for one output, and that for several."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def by_outputs(of_numbers: F, of_vectors: Callable[..., Any]) -> F:
    """``of_numbers``, or ``of_vectors`` when the problem given first has several outputs."""

    @functools.wraps(of_numbers)
    def call(*given: Any, **options: Any) -> Any:
        problem = given[0] if given else options.get("problem")
        chosen = of_vectors if getattr(problem, "several", False) else of_numbers
        return chosen(*given, **options)

    return call  # type: ignore[return-value]
