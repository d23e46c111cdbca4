"""Tell the operator, at the start, which records are kept for want of retention, and which are not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from octavo.log.directory.by_default import list_sizes
from octavo.log.tiers import RemotePart, list_parts


def tell_kept(sizes: Mapping[str, int]) -> list[str]:
    """Return sentences on the topics without retention, in a directory that Apache Kafka has served.

    sizes: how many bytes of each of them Kafka's default would delete now
    """
    if not sizes:
        return []
    going = {topic: size for topic, size in sizes.items() if size}
    first = (
        "Apache Kafka has served this directory, whose server.properties said how long records are kept: that is not "
        f"in the directory. The records of {len(sizes):,} topic(s) without retention.ms are kept until it is given in "
        "the file of settings or by --override, such as log.retention.hours=168, which is Kafka's default, or "
        f"log.retention.ms=-1 for ever. By the default, {sum(going.values()):,} bytes of them would go now"
    )
    return [first, *(f"kept, although Kafka's default would delete it: {each}" for each in list_sizes(going))]


def tell_remote(parts: Sequence[RemotePart]) -> list[str]:
    """Return sentences on tiered partitions, most of whose records are in remote storage."""
    if not parts:
        return []
    first = (
        f"{len(parts):,} partition(s) are tiered (remote.storage.enable=true), and Octavo does not read remote storage "
        "yet: they are served from their first offset on this disk, and what is before that is left as it is"
    )
    return [first, *(f"in remote storage only: {each}" for each in list_parts(parts))]
