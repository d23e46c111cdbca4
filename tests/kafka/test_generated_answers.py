"""The broker and Apache Kafka answer conversations that are made from kio's schemas and a seed in the same way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.api_keys import APIS
from octavo.errors import ErrorCode
from octavo.server.serving import serve
from tests.kafka.conftest import NewBroker
from tests.server.generated.asking import NO_ANSWER, Result
from tests.server.generated.cases import Case, cases, every_version
from tests.server.generated.fixture import SETTINGS, ask_all
from tests.server.generated.on_purpose import DIFFERENCES
from tests.server.generated.once_different import once_different
from tests.soak.plugin import Soak

ORDINARY = 500
SEED = 16
OF_A_SEED = 300  # cases that two brokers are asked in the soak, before others take their place
ENOUGH = 5_000  # cases, of which most of every API should get past the checks

# What the best answer is to requests that one node without security cannot fulfil.
_BEST: dict[int, set[int]] = {
    keys.SASL_HANDSHAKE: {ErrorCode.ILLEGAL_SASL_STATE},
    keys.SASL_AUTHENTICATE: {ErrorCode.ILLEGAL_SASL_STATE},
    keys.DESCRIBE_ACLS: {ErrorCode.SECURITY_DISABLED},
    keys.CREATE_ACLS: {ErrorCode.SECURITY_DISABLED},
    keys.DELETE_ACLS: {ErrorCode.SECURITY_DISABLED},
    keys.CREATE_DELEGATION_TOKEN: {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    keys.RENEW_DELEGATION_TOKEN: {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    keys.EXPIRE_DELEGATION_TOKEN: {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    keys.DESCRIBE_DELEGATION_TOKEN: {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    keys.ELECT_LEADERS: {0, ErrorCode.ELECTION_NOT_NEEDED},
    keys.ALTER_PARTITION_REASSIGNMENTS: {0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS},
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS: {0, ErrorCode.RESOURCE_NOT_FOUND},
}


@pytest.fixture
def ask(new_broker: NewBroker, tmp_path: Path) -> Callable[[Iterable[Case]], Iterator[Result]]:
    """Asks both brokers some cases."""

    def ask(several: Iterable[Case]) -> Iterator[Result]:
        number = len(list(tmp_path.iterdir()))
        with new_broker(tmp_path / f"kafka{number}", settings=SETTINGS) as kafka:
            kafka.format()
            kafka.start()
            with serve(tmp_path / f"ours{number}", config=SETTINGS, say=lambda _: None) as server:
                yield from ask_all(several, server.bootstrap_servers, kafka.address)

    return ask


@pytest.mark.exhaustive
def test_generated_requests_are_answered_as_kafka_answers_them(
    ask: Callable[[Iterable[Case]], Iterator[Result]],
) -> None:
    results = list(ask([*once_different(), *cases(SEED, ORDINARY)]))
    check(results, SEED)
    results = [each for each in results if each.case.number >= 0]
    assert {(each.case.api_key, each.case.version) for each in results} == set(every_version())
    check_depth(results)


@pytest.mark.soak(30)
def test_many_generated_requests_are_answered_as_kafka_answers_them(
    ask: Callable[[Iterable[Case]], Iterator[Result]], soak: Soak
) -> None:
    every: list[Result] = []
    for seed in soak.seeds():
        results = list(ask(cases(seed, OF_A_SEED)))
        check(results, seed)
        every += results
    if len(every) >= ENOUGH:
        check_depth(every)


def check(results: Iterable[Result], seed: int) -> None:
    """Fail with the first differences."""
    found = [f"seed {seed}, case {each.case.number}: {line}" for each in results for line in each.found]
    assert not found, "\n".join([f"{len(found)} differences:", *found[:20]])


def check_depth(results: list[Result]) -> None:
    """See that most requests get past the checks, for every API: refusals alone would prove little."""
    asked: Counter[int] = Counter()
    deep: Counter[int] = Counter()
    for each in results:
        asked[each.case.api_key] += 1
        best = _BEST.get(each.case.api_key, {0})
        deep[each.case.api_key] += any(is_deep(answer, best) for answer in each.tried)
    shallow = [APIS[key].name for key in APIS if deep[key] * 2 < asked[key]]
    assert not shallow, shallow
    meant = sum(each.is_meant for each in results)
    assert meant * 20 < len(results), f"{meant} cases end with a difference that is meant"


def is_deep(answer: Any, best: set[int]) -> bool:
    """Whether part of an answer has no error, or the best that there can be; an answer without codes has none."""
    if not isinstance(answer, dict):
        return bool(answer == NO_ANSWER)
    codes = set(error_codes(answer))
    return not codes or bool(codes & best)


def error_codes(answer: Any) -> Iterator[int]:
    """All error codes in an answer."""
    if isinstance(answer, dict):
        if "error_code" in answer:
            yield answer["error_code"]
        for each in answer.values():
            yield from error_codes(each)
    elif isinstance(answer, list):
        for each in answer:
            yield from error_codes(each)


def test_what_differs_on_purpose_is_in_the_documentation() -> None:
    text = " ".join(Path(__file__, "../../../docs/broker.md").resolve().read_text("utf-8").split())
    section = text.partition("## What differs from Apache Kafka")[2].partition("## ")[0]
    told = [each.strip() for each in section.partition(": - ")[2].split(" - ")]
    assert told == list(DIFFERENCES), (
        "docs/broker.md and tests/server/generated/on_purpose.py tell the same differences"
    )
