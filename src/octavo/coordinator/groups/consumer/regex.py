"""Regular expressions to which members subscribe, in RE2's syntax: `check_regex`, `regex_problem`, `matching`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from octavo.coordinator.groups.consumer.requests import Refused
from octavo.errors import ErrorCode

# What RE2 says, and what RE2/J, which Kafka uses, says instead. The rest they say alike.
_WORDS: Final = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
}
# RE2 keeps all threads waiting while it compiles, so that expressions have a limit. A class of Unicode's characters has
# hundreds of ranges, which takes far longer than anything else of the same length.
_MAX_MEMORY: Final = 1 << 20
_MOST_CLASSES: Final = 100
_CLASS: Final = re.compile(r"\\[pP]")  # for our own pattern: clients' patterns are for RE2
_TOO_LARGE: Final = "pattern too large - compile failed"
_LOOK_BEHIND: Final = "invalid perl operator: (?<"


def check_regex(regex: str) -> None:
    """Raise `Refused` if a regular expression is not valid."""
    problem = regex_problem(regex)
    if problem is not None:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}."
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, message)


def regex_problem(regex: str) -> str | None:
    """Return what is wrong with a regular expression, in the words that Kafka has for it; None if nothing is."""
    compiled = _compile(regex)
    return compiled if isinstance(compiled, str) else None


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a regular expression matches as a whole; none if it is not valid."""
    compiled = _compile(regex)
    return frozenset() if isinstance(compiled, str) else frozenset(name for name in names if compiled.fullmatch(name))


def _compile(regex: str) -> Any:
    """Return a compiled regular expression, or what is wrong with it."""
    import re2  # here, as few groups use it

    if next(islice(_CLASS.finditer(regex), _MOST_CLASSES, None), None) is not None:
        return _TOO_LARGE
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        what = "invalid named capture" if text.startswith(_LOOK_BEHIND) else text.split(":")[0]
        return _WORDS.get(what, what)
