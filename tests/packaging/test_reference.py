"""The documentation site can be built, describes everything that is exported, and loads nothing from other hosts."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

import octavo

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = [import_module(f"octavo.{found.name}") for found in pkgutil.iter_modules(octavo.__path__)]
EXPORTED: Final[dict[str, Any]] = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in PACKAGES
    for name in getattr(package, "__all__", [])
}
CLASSES: Final = {name: value for name, value in EXPORTED.items() if inspect.isclass(value)}

# In an element that loads something: the address of another host.
_LOADED_BY_PAGE: Final = re.compile(r"""<(?!a\b)[^>]*\s(?:src|srcset|href|data|poster)=["']?((?:\w+:)?//[^"'\s>]+)""")
_LOADED_BY_STYLE: Final = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


def build(folder: Path) -> Path:
    """Build the site as `make docs` does; return where its first page is."""
    command = [sys.executable, str(ROOT / "docs/site"), str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder / "html"


def descriptions(site: Path) -> dict[str, str]:
    """The text below each name in the reference, without members and without what Sphinx says itself."""
    found = {}
    for page in (site / "reference").rglob("*.html"):
        objects = re.finditer(
            r'<dt [^>]*id="([\w.]+)">.*?</dt>\s*<dd>(.*?)(?=<dl|</dd>)', page.read_text("utf-8"), re.DOTALL
        )
        for name, described in (match.groups() for match in objects):
            found[name] = re.sub(r"<p>(?:Bases:|alias of).*?</p>|<[^>]*>|\s+", " ", described, flags=re.DOTALL).strip()
    return found


def public_members(owner: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that a class has from Octavo."""
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        code = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isfunction(code) and code.__module__.startswith("octavo."):
            yield name, getattr(owner, name)


def loaded_from_elsewhere(site: Path) -> list[tuple[str, str]]:
    """Files of the site, with the addresses of other hosts that they load something from."""
    return [
        (file.name, address)
        for suffix, pattern in (("html", _LOADED_BY_PAGE), ("css", _LOADED_BY_STYLE))
        for file in site.rglob(f"*.{suffix}")
        for address in pattern.findall(file.read_text("utf-8"))
    ]


def test_every_public_method_has_a_docstring() -> None:
    methods = {f"{name}.{member}": value for name, owner in CLASSES.items() for member, value in public_members(owner)}
    assert len(methods) > 100
    assert [name for name, value in methods.items() if not inspect.getdoc(value)] == []


@pytest.mark.exhaustive
def test_the_site_describes_what_is_exported_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    site = build(tmp_path)  # once, since that takes seconds
    described = descriptions(site)
    assert [name for name in EXPORTED if not described.get(name)] == []
    methods = [f"{name}.{member}" for name, owner in CLASSES.items() for member, _ in public_members(owner)]
    assert [name for name in methods if not described.get(name)] == []
    assert loaded_from_elsewhere(site) == []
