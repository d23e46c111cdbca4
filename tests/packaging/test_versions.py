"""The pages and the package name the versions of Python that are tested, and no others."""

from __future__ import annotations

import re
import tomllib

from tests.packaging.environment import ROOT


def test_all_name_the_same_versions() -> None:
    tested = re.search(r"^TESTED := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert tested is not None
    versions = tested[1].split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classifier = re.compile(r"Programming Language :: Python :: (\d+\.\d+)")
    assert [found[1] for found in map(classifier.fullmatch, project["classifiers"]) if found] == versions
    assert project["requires-python"] == f">={versions[0]}"
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text("utf-8")
        named = re.findall(r"(?<![\d.:])3\.1\d(?!\d|\.\d)", text)
        assert set(named) == set(versions), page
        assert not re.search(r"Python[^.]*3\.\d+ (or later|or newer|and later|\+)", text), page
