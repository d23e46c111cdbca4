"""The offset map: the last offset of every key, in bounded memory.

Its capacity follows Kafka's rule: a slot has 24 bytes, and nine of ten slots are used. If a log cannot have that many
keys, the map takes less memory.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np

from octavo.errors import InvalidInput
from octavo.records.kernels.compaction import fill
from octavo.records.kernels.compaction.map import WORDS

SLOT_SIZE: Final = WORDS * 8
LOAD_FACTOR: Final = 0.9  # log.cleaner.io.buffer.load.factor
MAX_MEMORY: Final = 2**31 - 1  # Kafka's limit for one thread
_SPARE: Final = 64  # additional slots, for small maps


class OffsetMap:
    """A map from keys to their last offsets. It is filled once, and then read."""

    def __init__(self, memory: int, *, start_offset: int, max_keys: int) -> None:
        """Make a map for the keys of records from `start_offset` on, of which there are at most `max_keys`.

        Raises `InvalidInput` if there is no memory for a single key.
        """
        self.slot_count: Final = min(memory, MAX_MEMORY) // SLOT_SIZE
        max_entries = int(self.slot_count * LOAD_FACTOR)
        if max_entries < 1:
            raise InvalidInput(f"an offset map needs memory for a key; {memory} bytes are too few")
        slots = min(self.slot_count, 2 * max_keys + _SPARE)
        self.slots: Final = np.zeros(WORDS * slots, np.int64)
        self.seed: Final = np.frombuffer(secrets.token_bytes(16), np.int64)
        self.state: Final = np.zeros(fill.FILL_STATE, np.int64)
        self.state[fill.MAX_ENTRIES] = min(max_entries, slots - 1)  # one slot stays free, or a search would never end
        self.state[fill.LATEST] = -1
        self.state[fill.START_OFFSET] = start_offset

    @property
    def latest_offset(self) -> int:
        """The last offset that the map covers. It covers all offsets from the start up to this one."""
        return int(self.state[fill.LATEST])

    @latest_offset.setter
    def latest_offset(self, offset: int) -> None:
        self.state[fill.LATEST] = offset

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return int(self.state[fill.ENTRIES])

    @property
    def records_read(self) -> int:
        """Number of records read to fill the map."""
        return int(self.state[fill.RECORDS])

    @property
    def utilization(self) -> float:
        """Share of all slots that are taken."""
        return self.key_count / self.slot_count
