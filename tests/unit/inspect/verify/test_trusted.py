"""Checksums of kernels are held to a library before they are believed."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.errors import LogError
from octavo.inspect.verify import trusted
from octavo.records.kernels import Kernels, kernels


def test_compiled_kernels_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_KERNELS", "compiled")
    assert trusted.trusted_kernels(0) is kernels(0)


class Wrong(Kernels):
    """Kernels that find every checksum right, or every one wrong."""

    def __init__(self, rows: int) -> None:
        super().__init__(compiled=True)
        self._rows = rows

    @property
    def examine(self) -> Any:
        return lambda *arguments: (0, self._rows, 0, 0, 0)


@pytest.mark.parametrize("rows", [0, 1])
def test_kernels_that_are_wrong_are_refused(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted, "kernels", lambda size: Wrong(rows))
    with pytest.raises(LogError, match="wrong checksums"):
        trusted.trusted_kernels(0)
