"""What to ask Apache Kafka about the files of a data directory: see LogFiles.java."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.kafka.judge import Judge


class Answer(NamedTuple):
    """What Kafka says to one item; `error` is the class of the exception, if that is what it says."""

    value: Any
    error: str | None


def ask(judge: Judge, op: str, items: list[Any]) -> list[Answer]:
    answers = judge.ask(f"files.{op}", items=items)
    return [Answer(answer.get("value"), answer.get("error", {}).get("class")) for answer in answers]


def ask_one(judge: Judge, op: str, **item: Any) -> Any:
    [answer] = ask(judge, op, [item])
    assert answer.error is None, answer
    return answer.value
