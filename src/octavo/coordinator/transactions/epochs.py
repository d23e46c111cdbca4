"""Epochs of producers, and where they end."""

from __future__ import annotations

from typing import Final

LARGEST_EPOCH: Final = 0x7FFF
LAST_EPOCH: Final = LARGEST_EPOCH - 1  # of a producer: one more is left to fence it
BUMPS_EPOCHS: Final = 2  # the first version of transactions that has an epoch for each transaction
NONE: Final = -1  # no producer id, no epoch, no time
