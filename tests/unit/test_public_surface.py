"""What a public signature mentions can be imported from where the signature is."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pytest

import octavo.errors
import octavo.log
import octavo.records

PACKAGES: Final = (octavo.records, octavo.log, octavo.errors)

# Nobody calls these constructors: the objects come from a method, such as `DataDirectory.open` or `Log.read`.
MADE_BY_US: Final = ("DataDirectory", "Log", "WatchedLog", "LogReader", "ReadResult", "ArrowReader")

# Parts of a log that its own house looks at. They are not for callers, who have methods for what these tell.
INSIDE: Final = ("ProducerStates", "View", "DirectoryObserver", "Image")

# Other names of types, which the reference describes by the comments after them.
ALIASES: Final = (
    *("Clock", "OnProgress", "OnCompaction", "OnDelivery", "OnRebalance", "Serializer", "Deserializer", "Partitioner"),
    *("Buffer", "Control", "HeaderLike", "PartitionState"),
)


def exported() -> dict[str, Any]:
    return {f"{package.__name__}.{name}": getattr(package, name) for package in PACKAGES for name in package.__all__}


@cache
def names_in(module: str) -> dict[str, Any]:
    """The names that annotations of a module may use, those imported for type checkers included."""
    loaded = import_module(module)
    names = dict(vars(loaded))
    for node in ast.walk(ast.parse(inspect.getsource(loaded))):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), names)
    return names


def home_of(kind: type) -> str:
    """The module that a class is defined in: errors say that they are in `octavo.errors`, and are in a part of it."""
    if kind.__module__ != octavo.errors.__name__:
        return kind.__module__
    # Not `builtins`, which pytest adds to modules of a package that has a plugin.
    parts = [part for part in vars(octavo.errors).values() if isinstance(part, ModuleType)]
    parts = [part for part in parts if part.__name__.startswith(octavo.errors.__name__)]
    return next(part.__name__ for part in parts if f"\nclass {kind.__name__}(" in inspect.getsource(part))


def annotated(thing: Any, module: str) -> Iterator[Any]:
    for name, annotation in inspect.get_annotations(thing).items():
        if not name.startswith("_"):
            yield eval(annotation, names_in(module)) if isinstance(annotation, str) else annotation


def functions_of(kind: type, *, with_constructor: bool) -> Iterator[Any]:
    for name, member in vars(kind).items():
        if name.startswith("_") and not (name.startswith("__") and name.endswith("__")):
            continue
        if name == "__init__" and not with_constructor:
            continue
        if isinstance(member, property):
            yield member.fget
        elif isinstance(member, classmethod | staticmethod):
            yield member.__func__
        elif isinstance(member, cached_property):
            yield member.func
        elif inspect.isfunction(member):
            yield member


def signatures(thing: Any) -> Iterator[Any]:
    """Every type that the public part of a class or function is annotated with."""
    if not isinstance(thing, type):
        yield from annotated(thing, thing.__module__)
        return
    for kind in thing.__mro__:
        if kind.__module__.startswith("octavo."):
            yield from annotated(kind, home_of(kind))
            for function in functions_of(kind, with_constructor=thing.__name__ not in MADE_BY_US):
                if function.__module__.startswith("octavo."):
                    yield from annotated(function, function.__module__)


def types_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, list | tuple):
        for each in annotation:
            yield from types_in(each)
    elif typing.get_origin(annotation) is not None:
        yield from types_in(typing.get_origin(annotation))
        yield from types_in(typing.get_args(annotation))
    elif isinstance(annotation, type) and annotation.__module__.startswith("octavo."):
        yield annotation


@pytest.mark.parametrize("name", [name for name, thing in exported().items() if callable(thing)])
def test_every_type_of_a_public_signature_can_be_imported_with_it(name: str) -> None:
    public = list(exported().values())
    missing = {
        kind.__qualname__
        for annotation in signatures(exported()[name])
        for kind in types_in(annotation)
        if kind not in public and kind.__name__ not in INSIDE and not kind.__module__.startswith("octavo.schemas.")
    }
    assert missing == set()


def test_a_signature_that_mentions_something_else_is_found() -> None:
    found = {kind.__name__ for annotation in signatures(octavo.log.DataDirectory) for kind in types_in(annotation)}
    assert {"WatchedDirectory", "Topic", "TopicPartition", "Storage"} <= found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_everything_that_is_exported_is_there_once_and_says_what_it_is(package: ModuleType) -> None:
    assert len(package.__all__) == len(set(package.__all__))
    for name in package.__all__:
        thing = getattr(package, name)
        assert name in ALIASES or thing.__name__ == name
        assert (thing.__doc__ or "").strip() or name in ALIASES, name


@pytest.mark.parametrize(
    "function",
    [octavo.log.Producer.__init__, octavo.log.Consumer.__init__, octavo.log.Log.open, octavo.log.Log.compact],
    ids=lambda function: str(function.__qualname__),
)
def test_the_types_of_functions_that_callers_give_can_be_imported(function: Callable[..., Any]) -> None:
    words = {word for text in inspect.get_annotations(function).values() for word in re.findall(r"\w+", text)}
    known = names_in(function.__module__)
    mentioned = {word for word in words if typing.get_origin(known.get(word)) is Callable}
    assert mentioned
    assert mentioned <= set(octavo.log.__all__)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_name_that_is_not_there_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = package.nothing_of_the_kind


KIO: Final = ("Topic", "PartitionState", "Coordinator", "ProducerIdentity", "handover", "Handover", "ChangedSetting")


def test_importing_from_the_log_loads_nothing_that_takes_long() -> None:
    names = ", ".join(name for name in octavo.log.__all__ if name not in KIO)
    script = (
        f"from octavo.log import {names}; import sys; print({{'numpy', 'numba', 'pyarrow', 'kio'}} & {{*sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_importing_a_name_of_the_log_imports_no_more_of_it_than_that_needs() -> None:
    script = "from octavo.log import TopicPartition; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("octavo.log")}
    # Whoever names a folder may have to write it.
    needed = ("names", "storage", "at_once", "flusher", "sync", "writeback", "disk_errors")
    assert ours == {"octavo.log", *(f"octavo.log.{name}" for name in needed)}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_what_is_exported_is_listed(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
