"""The features of a cluster that a broker supports, and their levels."""

from __future__ import annotations

from typing import Final

# Those that Kafka 4.3 supports, as far as they concern what is served here.
SUPPORTED_FEATURES: Final = {"group.version": (0, 1), "metadata.version": (7, 30), "transaction.version": (0, 2)}

# A member of a cluster has to support all that the cluster uses, or controllers do not let it in. Share groups and
# Streams groups have coordinators, which a member does not run.
MEMBER_FEATURES: Final = {
    **SUPPORTED_FEATURES,
    "eligible.leader.replicas.version": (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}
