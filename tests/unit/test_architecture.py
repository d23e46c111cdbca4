"""The map of the house has every room."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import octavo

MAP: Final = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
HOUSE: Final = Path(octavo.__file__).parent
STOREYS: Final = (
    "records",
    "schemas",
    "coordinator",
    "cluster",
    "log",
    "values",
    "spark",
    "broker",
    "client",
    "server",
)


def on_the_map() -> set[str]:
    """Every room that a row begins with: `log/names.py`, and `v2.py` in a row that begins with `records/batch.py`."""
    rooms = set()
    for line in MAP.read_text("utf-8").splitlines():
        storey = ""
        if line.startswith("| `"):
            for name in line.split("|")[1].replace("`", "").split(","):
                above, _, room = name.strip().rstrip("/").rpartition("/")
                storey = above or storey
                rooms.add(f"{storey}/{room}" if storey else room)
    return rooms


def in_the_house(storey: str) -> list[str]:
    return sorted(
        f"{storey}/{path.name}"
        for path in (HOUSE / storey).iterdir()
        if (path.suffix == ".py" and path.name != "__init__.py") or (path / "__init__.py").exists()
    )


@pytest.mark.parametrize("room", [room for storey in STOREYS for room in in_the_house(storey)])
def test_every_module_is_on_the_map(room: str) -> None:
    assert room in on_the_map()


def test_every_room_on_the_map_is_there() -> None:
    rooms = [room for room in on_the_map() if room.startswith(STOREYS)]
    assert len(rooms) > 40
    assert not [room for room in rooms if not (HOUSE / room).exists()]


def test_the_folders_of_the_unit_tests_are_those_of_the_house() -> None:
    unit = Path(__file__).resolve().parent
    folders = [path.parent.relative_to(unit) for path in unit.rglob("test_*.py")]
    assert len(set(folders)) > 10
    assert not [folder for folder in folders if not (HOUSE / folder / "__init__.py").exists()]


STEP: Final = re.compile(r"`([a-z_/]+\.py)`\s+`([A-Za-z_.]+)`")


def defined_in(module: str) -> set[str]:
    """The classes and functions of a module, and the methods of its classes as `Class.method`."""
    names = set()
    for node in ast.parse((HOUSE / module).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            names |= {node.name, *(f"{node.name}.{method}" for method in methods)}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return names


def test_every_step_of_the_walks_is_there() -> None:
    walks = MAP.read_text("utf-8").partition("## Walks")[2].partition("\n## ")[0]
    steps = STEP.findall(walks)
    assert len(steps) > 30
    assert not [(module, name) for module, name in steps if name not in defined_in(module)]
