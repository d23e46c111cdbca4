"""Regular expressions: RE2's syntax, the whole name, and Kafka's words where they are not valid."""

from __future__ import annotations

import pytest

from octavo.coordinator.groups.consumer.regex import check_regex, matching
from octavo.coordinator.groups.consumer.requests import Refused
from octavo.errors import ErrorCode


@pytest.mark.parametrize(
    ("regex", "reason"),  # what RE2/J 1.8 says, with which Kafka 4.3 compiles them
    [
        ("k(?=x)", "invalid or unsupported Perl syntax"),
        ("(?<=x)a", "invalid named capture"),
        ("(?<n", "invalid named capture"),
        ("a(", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("\\", "trailing backslash at end of expression"),
        ("\\1", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        ("x|" * 70 + r"\pL" * 40 + r"[\PN]" * 61, "pattern too large - compile failed"),  # Kafka takes its time
        ("(" + r"\pL" + "{1000})", "pattern too large - compile failed"),
    ],
)
def test_what_is_not_valid(regex: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        check_regex(regex)
    assert refused.value.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."


def test_many_names_are_not_too_large() -> None:
    names = [f"orders-{number:05}" for number in range(2000)]
    assert matching("|".join(names), [*names, "orders-02000"]) == set(names)


def test_the_whole_name_is_matched() -> None:
    names = ["orders", "orders-2", "my-orders", "__consumer_offsets"]
    assert matching("orders", names) == {"orders"}
    assert matching("orders.*", names) == {"orders", "orders-2"}
    assert matching(".*", names) == set(names)
    assert matching("(?i)ORDERS", names) == {"orders"}
    assert matching("a|orders", names) == {"orders"}


def test_an_evil_expression_takes_no_time() -> None:
    assert matching("(a*)*b", ["a" * 200]) == frozenset()  # RE2 does not go back
