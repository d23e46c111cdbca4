"""The metadata of a data directory whose node is a member of a cluster: `MemberMetadata`. Its controllers decide."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from octavo.log.clock import Clock
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.metadata import MetadataStore, Topic
from octavo.log.metadata.cluster_log import ClusterLog
from octavo.log.metadata.image import Image
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.storage import Storage


class MemberMetadata(MetadataStore):
    """What the controllers of a cluster have decided. It cannot be changed here."""

    def __init__(
        self, folder: Path, followed: FollowedMetadata, *, node_id: int, storage: Storage, clock: Clock
    ) -> None:
        super().__init__([folder], storage=storage, read_only=False, clock=clock, new_node_id=node_id)
        self.followed: Final = followed

    def _read_log(self) -> ClusterLog | None:
        return None

    def settle(self) -> None:
        """Do nothing: nothing is changed here."""

    def close(self) -> None:
        """Write the log of the controllers to the disk, and close it."""
        self.followed.close()

    @property
    def topics(self) -> SortedMap[str, Topic]:
        """All topics by name."""
        return self.followed.topics

    @property
    def image(self) -> Image:
        """The state of the cluster."""
        return self.followed.image

    @property
    def leader_epoch(self) -> int:
        """The newest epoch of the controllers."""
        return self.followed.leader_epoch

    @property
    def end_offset(self) -> int:
        """The offset after the last record that was applied."""
        return self.followed.applied_offset + 1

    def others_decide(self) -> str:
        """Return why this node does not control its partitions alone."""
        return "the controllers of its cluster decide on its topics"
