"""Every rule has a fault that was planted, and is in the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from octavo.inspect.verify import all_rules
from octavo.inspect.verify.replicas import difference
from tests.unit.inspect.verify import (
    test_batch_rules,
    test_directory_rules,
    test_kraft_rules,
    test_producer_rules,
    test_segment_rules,
)
from tests.unit.inspect.verify.planting import rules_of

PAGE: Final = Path(__file__).resolve().parents[4] / "docs" / "verify.md"
ROW: Final = re.compile(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)


def planted() -> set[str]:
    """The rules for which a test plants a fault."""
    modules = (test_batch_rules, test_directory_rules, test_kraft_rules, test_producer_rules)
    faults = {fault.rule for module in modules for fault in module.FAULTS}
    segments = {fault.rule for fault in test_segment_rules.INDEXES} | {case[0] for case in test_segment_rules.SEGMENTS}
    others = {"batch-size", "segment-lost", "batches-lost"} | rules_of(
        difference
    )  # tested in `test_batch_rules`, `test_lost_segments` and `replicas/test_replicas`
    return faults | segments | others


def test_every_rule_has_a_planted_fault() -> None:
    assert {rule.name for rule in all_rules()} == planted()


def test_there_are_more_than_sixty() -> None:
    assert len(all_rules()) > 60


def test_the_page_has_every_rule_with_its_meaning_and_repair() -> None:
    listed = [(name, means, repair) for name, means, repair in ROW.findall(PAGE.read_text("utf-8"))]
    assert sorted(listed) == sorted((rule.name, rule.means, rule.repair) for rule in all_rules())


def test_names_are_words_and_texts_are_sentences() -> None:
    for rule in all_rules():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name), rule.name
        for text in (rule.means, rule.repair):
            assert text[0].isupper() or text[0] == "`", rule
            assert text.endswith("."), rule
            assert "|" not in text, rule
