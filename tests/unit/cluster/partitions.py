"""Partitions for tests."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from octavo.cluster.messages import TopicIdPartition

TOPIC_ID: Final = UUID(int=1000)
A: Final = TopicIdPartition(TOPIC_ID, 0)
B: Final = TopicIdPartition(TOPIC_ID, 1)
