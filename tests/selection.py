"""Which cases of a test `make test` runs, and which only `make test-all`.

`make test` shows every feature once. What repeats it over versions, seeds, codecs or combinations is marked
`exhaustive`: a whole test by the mark itself, the cases of a parametrized test by `some`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

EXHAUSTIVE: Final = pytest.mark.exhaustive


def some(cases: Iterable[Any], count: int = 1, *, where: Callable[[Any], bool] | None = None) -> list[Any]:
    """All cases for `parametrize`; all but `count` of them, spread evenly, are for `make test-all` alone.

    `where`: says of a case whether `make test` runs it, in place of `count`.
    """
    listed = list(cases)
    step = len(listed) / count
    kept = {int(number * step) for number in range(count)}
    return [
        case if (number in kept if where is None else where(case)) else _for_test_all(case)
        for number, case in enumerate(listed)
    ]


def _for_test_all(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, EXHAUSTIVE], id=case.id)
    values = case if type(case) is tuple else (case,)  # a named tuple is one value
    return pytest.param(*values, marks=EXHAUSTIVE)
