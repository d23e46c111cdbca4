"""What the reference is about: the packages that programs import, and the names that these export."""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from abc import ABC
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import octavo

_NO_API: Final = {"cli"}  # a command, not something to import


@cache
def packages() -> tuple[ModuleType, ...]:
    """Return the packages and modules directly below `octavo`, by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(octavo.__path__) if found.name not in _NO_API)
    return tuple(import_module(f"octavo.{name}") for name in names)


def exported_names(module: ModuleType) -> list[str]:
    """Return `__all__`; without it, the public classes and functions that `module` itself defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


@cache
def by_name() -> dict[str, str]:
    """Return the full names of what is exported, by the names that only one package exports."""
    found: dict[str, list[str]] = {}
    for module in packages():
        for name in exported_names(module):
            found.setdefault(name, []).append(f"{module.__name__}.{name}")
    return {name: full[0] for name, full in found.items() if len(full) == 1}


@cache
def _classes() -> frozenset[type]:
    """Return the classes that are exported."""
    values = (getattr(module, name) for module in packages() for name in exported_names(module))
    return frozenset(value for value in values if isinstance(value, type))


def description(name: str, value: Any) -> str:
    """Return the docstring; for an alias of a type, such as `Name = Callable[..., None]  # what it is`, the comment."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    assigned = re.compile(rf"^{name}(?:: \w+)? = .*  # (.+)$", re.MULTILINE)
    for module in [module for full, module in sys.modules.items() if full.startswith("octavo.")]:
        if vars(module).get(name) is value and (found := assigned.search(inspect.getsource(module))):
            return found[1]
    return ""


def is_shown_as_base(base: Any) -> bool:
    """Whether the reference names `base` as a base class: not what is internal, nor what says nothing."""
    return base in _classes() or (base not in (object, ABC) and not base.__module__.startswith("octavo."))
