"""Values of a request that a broker has chosen itself: they are put in when the request is sent to that broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass
class Known:
    """What one broker has told in a conversation, and before it."""

    topic_ids: dict[str, bytes] = field(default_factory=dict)
    session_id: int = 0
    producer_id: int = 77
    member_id: str = ""
    log_dir: str = ""


@dataclass(frozen=True)
class TopicId:
    """The id of a topic, by its name."""

    name: str

    def value(self, known: Known) -> bytes:
        """Return the id; zeros if there is no such topic."""
        return known.topic_ids.get(self.name, bytes(16))


class SessionId:
    """The fetch session that was opened last."""

    def value(self, known: Known) -> int:
        """Return its id."""
        return known.session_id

    def __repr__(self) -> str:
        return "SessionId()"


class ProducerId:
    """The id of a producer that the broker has given out."""

    def value(self, known: Known) -> int:
        """Return the id."""
        return known.producer_id

    def __repr__(self) -> str:
        return "ProducerId()"


class MemberId:
    """The id of the member that joined last."""

    def value(self, known: Known) -> str:
        """Return the id."""
        return known.member_id

    def __repr__(self) -> str:
        return "MemberId()"


class LogDir:
    """The folder in which the broker keeps its logs."""

    def value(self, known: Known) -> str:
        """Return its path."""
        return known.log_dir

    def __repr__(self) -> str:
        return "LogDir()"


@dataclass(frozen=True)
class Records:
    """Records of a batch, some of which name a producer id that the broker has given out."""

    text: str
    build: Callable[[int], bytes]

    def value(self, known: Known) -> bytes:
        """Return the bytes."""
        return self.build(known.producer_id)

    def __repr__(self) -> str:
        return f"Records({self.text})"


_SYMBOLS: Final = (TopicId, SessionId, ProducerId, MemberId, LogDir, Records)


def resolved(value: Any, known: Known) -> Any:
    """Return a content with the values that belong to one broker."""
    if isinstance(value, dict):
        return {key: resolved(each, known) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolved(each, known) for each in value]
    return value.value(known) if isinstance(value, _SYMBOLS) else value
