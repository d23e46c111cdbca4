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

_NO_API: Final = {"cli", "on_demand"}  # a command, and what only packages need: nothing that programs import


@cache
def packages() -> tuple[ModuleType, ...]:
    """Return the packages and modules directly below `octavo`, by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(octavo.__path__) if found.name not in _NO_API)
    return tuple(import_module(f"octavo.{name}") for name in names)


def exported_names(module: ModuleType) -> list[str]:
    """Return `__all__`. A package without it is described as a whole."""
    names: list[str] = getattr(module, "__all__", [])
    return names


@cache
def by_name() -> dict[str, str]:
    """Return the full names of what is exported, by name."""
    return {name: f"{module.__name__}.{name}" for module in packages() for name in exported_names(module)}


@cache
def _classes() -> frozenset[type]:
    """Return the classes that are exported."""
    values = (getattr(module, name) for module in packages() for name in exported_names(module))
    return frozenset(value for value in values if isinstance(value, type))


def is_alias(name: str, value: Any) -> bool:
    """Whether `name` is another name of a class, or stands for a type such as `Callable[..., None]`."""
    return getattr(value, "__name__", None) != name


def description(name: str, value: Any) -> str:
    """Return the docstring; for an alias, the comment behind `Name = Callable[..., None]  # what it is`."""
    if not is_alias(name, value):
        return inspect.getdoc(value) or ""
    assigned = re.compile(rf"^{name}(?:: \w+)? = .*  # (.+)$", re.MULTILINE)
    for module in [module for full, module in sys.modules.items() if full.startswith("octavo.")]:
        if vars(module).get(name) is value and (found := assigned.search(inspect.getsource(module))):
            return found[1]
    return ""


def is_shown_as_base(base: Any) -> bool:
    """Whether the reference names `base` as a base class: not what is internal, nor what says nothing."""
    return base in _classes() or (base not in (object, ABC) and not base.__module__.startswith("octavo."))
