"""The map of the house has every room."""

from __future__ import annotations

from pathlib import Path

import pytest

import octavo

MAP = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
RECORDS = Path(octavo.__file__).parent / "records"
ROOMS = sorted(
    f"{path.name}/" if path.is_dir() else path.name
    for path in RECORDS.iterdir()
    if (path.suffix == ".py" and path.name != "__init__.py") or (path / "__init__.py").exists()
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_of_the_formats_is_on_the_map(room: str) -> None:
    rooms = [line.split("|")[1] for line in MAP.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert any(f"`{room}`" in names or f"`records/{room}`" in names for names in rooms)


def test_every_room_on_the_map_is_there() -> None:
    for line in MAP.read_text("utf-8").splitlines():
        if line.startswith("| `records/"):
            for name in line.split("|")[1].replace("`", "").split(","):
                assert (RECORDS / name.strip().removeprefix("records/")).exists(), name
