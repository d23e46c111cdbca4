"""Topics that are created because a client asks for their metadata: `AutoCreation`, of a broker that is alone.

As in Kafka, the client is told that there is no such topic, and asks again a moment later. A topic that was deleted is
gone for whoever asks for it next, even if asking brings another one of its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from octavo.errors import OctavoError, TopicExists
from octavo.log.names import CONSUMER_OFFSETS, METADATA_TOPIC, TRANSACTION_STATE

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_MOST: Final = 10_000  # names that wait for their turn


class AutoCreation:
    """Has another thread create topics. For the thread of the handlers."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._asked: Final[set[str]] = set()  # names that are being created

    def create(self, names: Iterable[str]) -> None:
        """Have topics created that do not exist, each once at a time."""
        new = sorted(set(names) - self._asked - {METADATA_TOPIC})
        if new and len(self._asked) + len(new) <= _MOST:
            self._asked.update(new)
            self._broker.do_elsewhere(lambda: self._create(new))

    def _create(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._create_one(name)
            finally:
                self._asked.discard(name)

    def _create_one(self, name: str) -> None:
        broker = self._broker
        if name in (CONSUMER_OFFSETS, TRANSACTION_STATE):
            broker.coordinators.create_topic(name)  # which has settings of its own
            return
        try:
            broker.create_topic(name, broker.config.num_partitions, {})
        except TopicExists:
            pass  # somebody else was faster
        except (OctavoError, OSError) as error:
            broker.troubles.failed("topics cannot be created", error)
