"""What `octavo.records` offers is what it says, in whatever order it is asked for."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from octavo import records

CHECK = """
import inspect
from typing import get_args
from octavo import records
for name in records.__all__:
    value = getattr(records, name)
    if name in ("Buffer", "Control", "HeaderLike"):
        assert get_args(value), (name, value)
    elif name[0].isupper():
        assert inspect.isclass(value), (name, value)
    else:
        assert inspect.isfunction(value), (name, value)
"""


def _one_by_one(names: list[str]) -> str:
    return "\n".join(f"from octavo.records import {name}" for name in names)


@pytest.mark.parametrize(
    "first",
    [
        _one_by_one(records.__all__),
        _one_by_one(records.__all__[::-1]),
        _one_by_one(sorted(records.__all__, key=str.lower)),
        _one_by_one(["Converted", "Lost", "convert"]),
        _one_by_one(["to_arrow", "convert", "from_arrow"]),
        "from octavo.records import *",
        "import octavo.records.conversion",
        "from octavo.records.conversion import Lost",
        "import octavo.records.arrow.writer, octavo.records.conversion, octavo.records.arrow.reader",
    ],
    ids=["as-told", "backwards", "sorted", "convert-last", "arrow-around", "star", "module", "from-module", "modules"],
)
def test_every_name_is_the_class_function_or_type_that_it_names(first: str) -> None:
    subprocess.run([sys.executable, "-c", first + CHECK], check=True)


def test_no_module_has_the_name_of_something_else() -> None:
    """Importing a module sets its name in the package: it would replace a function that is called the same."""
    modules = {module.name for module in pkgutil.iter_modules(records.__path__)}
    assert not modules & set(records.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'octavo.records' has no attribute 'arrows'"):
        _ = records.arrows  # type: ignore[attr-defined]  # that is the point
