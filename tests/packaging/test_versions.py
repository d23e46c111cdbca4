"""The pages and the package name the versions of Python and of Spark that are tested, and no others."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tests.packaging.environment import ROOT


def made_with(variable: str) -> list[str]:
    """The versions that a variable of the Makefile lists."""
    tested = re.search(rf"^{variable} := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert tested is not None
    return tested[1].split()


def project() -> dict[str, Any]:
    described: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return described


def test_all_name_the_same_versions() -> None:
    versions = made_with("TESTED")
    classifier = re.compile(r"Programming Language :: Python :: (\d+\.\d+)")
    assert [found[1] for found in map(classifier.fullmatch, project()["classifiers"]) if found] == versions
    assert project()["requires-python"] == f">={versions[0]}"
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text("utf-8")
        named = re.findall(r"(?<![\d.:])3\.1\d(?!\d|\.\d)", text)
        assert set(named) == set(versions), page
        assert not re.search(r"Python[^.]*3\.\d+ (or later|or newer|and later|\+)", text), page


def test_all_name_the_same_sparks() -> None:
    pinned = re.search(r"^pyspark==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    tested = [*made_with("SPARKS"), pinned[1]]
    versions = [version.rpartition(".")[0] for version in tested]
    assert versions == sorted(versions)
    extras = project()["optional-dependencies"]
    assert f"pyspark>={versions[0]}" in extras["spark"]
    assert f"pyspark[connect]>={versions[0]}" in extras["dev"]
    named = f"Spark {', '.join(versions[:-1])} and {versions[-1]} "
    assert named in " ".join((ROOT / "README.md").read_text("utf-8").split())
    table = re.search(
        r"^## Versions of Spark\n\n\| \|(.*)\|$", (ROOT / "docs/spark.md").read_text("utf-8"), re.MULTILINE
    )
    assert table is not None
    assert [version.strip() for version in table[1].split("|")] == versions


def test_all_name_the_same_systems() -> None:
    """A classifier says what is tested, and only the README can say how far another system is."""
    systems = [each for each in project()["classifiers"] if each.startswith("Operating System :: ")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert "Octavo runs on Linux. It is made for macOS" in readme
    assert "was tried on Linux with the means that macOS has, but not yet on a Mac." in readme
    assert "On Windows, except within WSL, where it was not tried" in readme
