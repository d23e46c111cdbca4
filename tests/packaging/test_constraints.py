"""What `make` installs can be installed on the oldest patch of each tested Python, not only on that of this machine."""

from __future__ import annotations

from importlib.metadata import distributions

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.packaging.index import asked, constraints, recorded
from tests.packaging.test_versions import made_with


def refused(required: dict[str, str]) -> list[str]:
    """What the first patch of a tested Python may not install."""
    oldest = [f"{version}.0" for version in made_with("TESTED")]
    return [
        f"{pin} on Python {python}"
        for pin, requires in required.items()
        for python in oldest
        if not SpecifierSet(requires).contains(python)
    ]


def test_the_index_was_asked_about_these_constraints() -> None:
    assert list(recorded()) == constraints(), "after a change of constraints.txt: make constraints"


def test_the_oldest_patch_of_each_tested_python_can_install_all() -> None:
    assert refused(recorded()) == []


def test_a_version_that_wants_a_later_patch_is_refused() -> None:
    assert refused({"soupsieve==4.1": ">=3.11.5", "six==1.17.0": ""}) == ["soupsieve==4.1 on Python 3.11.0"]


def test_all_that_is_installed_here_is_constrained() -> None:
    installed = {f"{canonicalize_name(found.name)}=={found.version}" for found in distributions()}
    assert [pin for pin in installed - set(constraints()) if not pin.startswith("octavo==")] == []


@pytest.mark.soak
def test_the_index_still_says_the_same() -> None:
    assert asked() == recorded()
