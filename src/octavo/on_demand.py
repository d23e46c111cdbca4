"""Let a package export names whose modules are imported only when the name is first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(
    namespace: dict[str, Any], modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    namespace: the package's `globals()`
    modules: the names that each module provides; module names are relative to the package
    """
    package: str = namespace["__name__"]
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(f"{package}.{module}"), name)
        return value

    def names() -> list[str]:
        return sorted({*namespace, *module_of})

    return get, names
