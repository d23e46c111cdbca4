"""The features that a member registers with, and why it cannot be a member of some clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from octavo.broker.features import MEMBER_FEATURES
from octavo.cluster.messages import Feature

FEATURES: Final = tuple(Feature(name, *levels) for name, levels in MEMBER_FEATURES.items())


def unsupported(finalized: Mapping[str, int]) -> str | None:
    """Return why a broker cannot be a member of a cluster with these features; None if it can."""
    for name, level in finalized.items():
        least, most = MEMBER_FEATURES.get(name, (0, 0))
        if level and not least <= level <= most:
            levels = f"levels {least} to {most}" if most else "no level"
            return f"the cluster has finalized {name} at level {level}, and this broker supports {levels} of it"
    return None
