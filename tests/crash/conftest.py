"""What tests of crashes have in common."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

MEMORY: Final = Path("/dev/shm")  # a disk would only be slower


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for what need not last."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as name:
        yield Path(name)
