"""The kinds of resources that have settings."""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """What has settings, as a number on the wire and in the metadata (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
