"""Find out whether a node alone controls the partitions of its directory, or shares control with other nodes.

If other nodes hold replicas, the leader decides what a partition holds. A record appended to one replica behind the
leader's back stays there when the node rejoins the cluster. Then two replicas hold different records at one offset, and
nothing in Kafka notices. So such a directory is not written to. According to the metadata, others share control if

    the quorum has other voters than this node
    another broker is registered
    a partition has, or is about to have, a replica on another node
    the folder belongs to a KRaft node but its metadata log is missing, so that nobody can tell

A directory without any metadata (partitions that were copied, or written by `Log.open` alone), or one from the time of
ZooKeeper, says nothing about other replicas. It counts as the only replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from octavo.log.files.meta_properties import MetaProperties
from octavo.log.metadata.cluster_log import FOLDER, ClusterLog, read_cluster_log
from octavo.log.metadata.image import Image
from octavo.log.names import BOOTSTRAP_CHECKPOINT
from octavo.log.storage import Storage

_KRAFT: Final = 1  # version of meta.properties


def others_decide(
    storage: Storage, folder: Path, identity: MetaProperties | None, log: ClusterLog | None, shared: Mapping[str, str]
) -> str | None:
    """Return why this node does not control its partitions alone; None if it does.

    folder: the one that has the metadata log
    shared: topics with replicas on other nodes, each with a sentence about that
    """
    if log is None:
        return _others_before_a_first_start(storage, folder, identity)
    image = log.image
    node_id = owner_of(identity, image)
    voters = other_voters(image, node_id)
    if voters is not None:
        return voters
    brokers = sorted(image.brokers.keys() - {node_id})
    if brokers:
        return f"the cluster of node {node_id} has other brokers: {_list(brokers)}"
    return shared[min(shared)] if shared else None


def other_voters(image: Image, node_id: int | None) -> str | None:
    """Return why this node may not change the metadata; None if it may."""
    voters = image.voters or tuple(image.controllers)
    if not voters or voters == (node_id,):
        return None
    return f"not node {node_id} but the controllers {_list(voters)} decide on its topics"


def _others_before_a_first_start(storage: Storage, folder: Path, identity: MetaProperties | None) -> str | None:
    """Answer `others_decide` for a directory without a metadata log, which may be formatted for a cluster."""
    if (folder / FOLDER).is_dir():
        image = read_cluster_log(storage, folder / FOLDER).image
        voters = other_voters(image, owner_of(identity, image))
        if voters is not None:
            return voters
    if identity is not None and identity.version == _KRAFT and not (folder / BOOTSTRAP_CHECKPOINT).exists():
        return (
            "its topics are kept somewhere else: give the folder of metadata.log.dir as well, "
            "as in DataDirectory.open([folder, metadata_folder])"
        )
    return None


def owner_of(identity: MetaProperties | None, image: Image) -> int | None:
    """Return the id of the node that owns the directory: without `meta.properties`, the only voter of the quorum."""
    if identity is not None:
        return identity.node_id
    return image.voters[0] if image.voters is not None and len(image.voters) == 1 else None


def _list(nodes: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, nodes))
