"""Rules, and the problems that break them.

A rule is declared once, in the module that checks it:

    CRC = Rule.declare("batch-crc", "log", means="...", repair="...")

    yield CRC.broken("00000000000000000000.log", position=4096, offset=17, found="stored 1, computed 2")

`all_rules` returns every rule that was declared; the documentation lists the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_declared: Final[dict[str, Rule]] = {}


@dataclass(frozen=True)
class Rule:
    """One thing that is always so in a sound directory."""

    name: str  # such as "batch-crc": what `--ignore` takes and `--json` prints
    kind: str  # the kind of file that can break it, such as "segment" or "offset index"
    means: str  # what it means if it is broken, as a sentence
    repair: str  # what would repair it, as a sentence

    @staticmethod
    def declare(name: str, kind: str, *, means: str, repair: str) -> Rule:
        """Make a rule, and list it among all rules. No two have the same name."""
        assert name not in _declared, name
        rule = _declared[name] = Rule(name, kind, means, repair)
        return rule

    def broken(self, file: str, *, position: int | None = None, offset: int | None = None, found: str = "") -> Problem:
        """Return the problem that a file breaks this rule. `file` is its name in the folder that is checked."""
        return Problem(file, position, offset, self, found)


@dataclass(frozen=True)
class Problem:
    """One place where a rule is broken."""

    file: str  # path of the file or folder; below the folder that is checked until the command makes it whole
    position: int | None  # of the first byte concerned in the file, if it is about bytes
    offset: int | None  # of the record or batch concerned, if that is known
    rule: Rule
    found: str = field(default="", compare=False)  # the numbers of this case, such as "stored 1, computed 2"
    instead: str = field(default="", compare=False)  # what would repair this case, if the rule's repair would not

    @property
    def repair(self) -> str:
        """What would repair this, as a sentence."""
        return self.instead or self.rule.repair

    def as_json(self) -> dict[str, Any]:
        """Return what `octavo verify --json` prints."""
        return {
            "file": self.file,
            "position": self.position,
            "offset": self.offset,
            "rule": self.rule.name,
            "found": self.found,
            "means": self.rule.means,
            "repair": self.repair,
        }


def all_rules() -> list[Rule]:
    """Return all rules, in the order in which they were declared."""
    import octavo.inspect.verify.checks  # noqa: F401 - imports every module that declares rules

    return list(_declared.values())
