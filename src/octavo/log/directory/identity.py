"""Give the folder of a member of a cluster its identity, as `kafka-storage format` does for a broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from octavo.errors import BadDirectory, CorruptFile
from octavo.log.directory.data_folder import DataFolder
from octavo.log.files.meta_properties import MetaProperties, random_uuid, read_meta_properties, write_meta_properties
from octavo.log.metadata.cluster_log import FOLDER
from octavo.log.names import META_PROPERTIES


def take_identity(folder: DataFolder, *, node_id: int, new_cluster_id: Callable[[], str]) -> MetaProperties:
    """Return the identity of a folder, after writing it into one that is empty.

    new_cluster_id: returns the id of the cluster, for a folder that has none. Raises `BadDirectory` if the folder is
    another node's, `CorruptFile` and `OSError`.
    """
    path = folder.path
    found = read_meta_properties(folder.storage, path)
    if found is None:
        if folder.partitions or (path / FOLDER).exists():
            raise BadDirectory(path, f"it has no {META_PROPERTIES}, which tell whose it is, and is not empty")
        found = MetaProperties(cluster_id=new_cluster_id(), node_id=node_id)
    elif found.version != 1 and found.node_id is None:
        why = "it names neither version=1 with a node.id and a cluster.id, nor a broker.id: the file was damaged"
        raise CorruptFile(path / META_PROPERTIES, 0, why)
    elif found.version != 1:
        raise BadDirectory(path, "it is of the time of ZooKeeper: only Apache Kafka 3 can migrate it")
    elif found.node_id != node_id:
        raise BadDirectory(path, f"it belongs to node {found.node_id}, not to node {node_id}")
    if found.directory_id is None:
        found = replace(found, directory_id=random_uuid())
        write_meta_properties(folder.storage, path, found)
    return found
