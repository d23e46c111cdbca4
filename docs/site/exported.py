"""The content of the reference: the packages that programs import, and the names that these packages export."""

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

_NO_API: Final = {"cli", "on_demand"}  # modules that programs do not import


@cache
def packages() -> tuple[ModuleType, ...]:
    """Return the packages and modules directly below `octavo`, sorted by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(octavo.__path__) if found.name not in _NO_API)
    return tuple(import_module(f"octavo.{name}") for name in names)


def exported_names(module: ModuleType) -> list[str]:
    """Return the names in `__all__`; none for a package without it, of which only the docstring is shown."""
    names: list[str] = getattr(module, "__all__", [])
    return names


@cache
def by_name() -> dict[str, str]:
    """Return the full name of each exported name, such as `octavo.log.Log` of `Log`."""
    return {name: f"{module.__name__}.{name}" for module in packages() for name in exported_names(module)}


@cache
def _classes() -> frozenset[type]:
    """Return all exported classes."""
    values = (getattr(module, name) for module in packages() for name in exported_names(module))
    return frozenset(value for value in values if isinstance(value, type))


def is_alias(name: str, value: Any) -> bool:
    """Whether `name` is an alias: another name of a class, or the name of a type such as `Callable[..., None]`."""
    return getattr(value, "__name__", None) != name


def description(name: str, value: Any) -> str:
    """Return the docstring; for an alias, the comment after it, as in `Name = Callable[..., None]  # what it is`."""
    if not is_alias(name, value):
        return inspect.getdoc(value) or ""
    assigned = re.compile(rf"^{name}(?:: \w+)? = .*  # (.+)$", re.MULTILINE)
    for module in [module for full, module in sys.modules.items() if full.startswith("octavo.")]:
        if vars(module).get(name) is value and (found := assigned.search(inspect.getsource(module))):
            return found[1]
    return ""


def is_shown_as_base(base: Any) -> bool:
    """Whether the reference names `base` as a base class. Internal classes, `object` and `ABC` are not named."""
    return base in _classes() or (base not in (object, ABC) and not base.__module__.startswith("octavo."))
