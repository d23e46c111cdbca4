"""The Makefile and what its recipes call is what GNU make 3.81 and BSD's tools understand, too: those of macOS."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.packaging.environment import ROOT

_SED: Final = r"\bsed\b[^|;&]*\s"
_REFUSED: Final = {
    "newer make: .ONESHELL": r"\.ONESHELL\b",
    "newer make: grouped targets": r"^[^\t#]*&::?(\s|$)",
    "newer make: != assigns": r"^[\w.-]+\s*!=",
    "newer make: ::= assigns": r"^[\w.-]+\s*::=",
    "newer make: define with =": r"^define\s+[\w.-]+\s*[:+?]?=",
    "newer make: its functions": r"\$[({](file|let|intcmp|guile)\s",
    "newer make: .RECIPEPREFIX": r"\.RECIPEPREFIX\b",
    "newer make: undefine, private": r"^(undefine|private)\s",
    "GNU sed: -i without a suffix": _SED + r"(-[a-zA-Z]*i(\s|$)|--in-place(\s|$))",
    "GNU sed: -r": _SED + r"(-[a-zA-Z]*r\b|--regexp-extended)",
    "GNU sed: \\t and the like": r"\bsed\b[^|]*\\[tnrswSW+?|]",
    "GNU xargs: -r and -d": r"\bxargs(\s+-\S+(\s+\d+)?)*\s+(-[a-zA-Z0-9]*[rd]|--(no-run-if-empty|delimiter))\b",
    "GNU mktemp: long options": r"\bmktemp\b[^|;&]*\s--",
    "GNU readlink: -f": r"\breadlink\b[^|;&]*\s-[a-zA-Z]*f\b",
    "GNU date: -d": r"\bdate\b[^|;&]*\s(-[a-zA-Z]*d\b|--date)",
}


def refused(line: str) -> list[str]:
    """What is wrong with a line of a Makefile or of a shell script."""
    return [what for what, pattern in _REFUSED.items() if re.search(pattern, line)]


@pytest.mark.parametrize(
    "line",
    [
        ".ONESHELL:",
        "one two &: three",
        "VERSION != git describe",
        "VERSION ::= 1",
        "define one =",
        "\t$(file >list,$(NAMES))",
        ".RECIPEPREFIX = >",
        "undefine ONE",
        "\tsed -i 's/a/b/' file",
        "\tsed -e 's/a/b/' -i file",
        "\tsed -i '' 's/a/b/' file",  # which GNU takes for a file
        "\tsed --in-place 's/a/b/' file",
        "\tsed -r 's/a+/b/' file",
        "\tsed -nr 's/a+/b/p' file",
        "\tsed 's/a/\\t/' file",
        "\tsed 's/a\\+/b/' file",
        "\tls | xargs -r rm",
        "\tls | xargs -0r rm",
        "\tls | xargs -n 1 -r rm",
        "\tls | xargs -d '\\n' rm",
        "\tmktemp --suffix=.html",
        "\tmktemp -d --tmpdir",
        "\treadlink -f file",
        "\tdate -d yesterday",
        "\tdate -ud yesterday",
    ],
)
def test_what_only_gnu_has_is_found(line: str) -> None:
    assert refused(line)


@pytest.mark.parametrize(
    "line",
    [
        "NAMES := $(filter-out a,$(ALL))",
        '\ttest "$$a" != b && b & wait; echo c',
        "target: | folder",
        "target:: other",
        "define one",
        "\tsed -i.bak 's/a/b/' file",
        "\tsed -n 's/\\(a*\\)\\.b/\\1/p' file | date -u",
        "\tsed -E 's/a+/b/' file; rm -r folder",
        "\tls | xargs -0 rm -r",
        "\tmktemp -d",
        "\treadlink file",
        "\tdate -u +%s",
        "\tsed_i -i update -d",
    ],
)
def test_what_all_have_is_not(line: str) -> None:
    assert not refused(line)


@pytest.mark.parametrize("name", ["Makefile", ".ci/run"])
def test_the_makefile_has_nothing_that_only_gnu_has(name: str) -> None:
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert {line: found for line in lines if (found := refused(line))} == {}
