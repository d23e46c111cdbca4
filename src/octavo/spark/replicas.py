"""Choose which of several replicas of a partition is read.

As in Kafka's leader election, it is the one with the highest last leader epoch; among equals, the one with the highest
log end offset. Records that another replica has after the offset where the two diverge are not in the log. They are
reported, not merged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from octavo.errors import BadDirectory, InvalidInput
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.files.leader_epochs import UNDEFINED, LeaderEpochs
from octavo.log.files.meta_properties import MetaProperties, check_one_cluster, read_meta_properties
from octavo.log.files.partition_metadata import read_topic_id
from octavo.spark.options import OnCorruption
from octavo.spark.partitions import Place, Replica, Replicas
from octavo.spark.threads import in_threads

if TYPE_CHECKING:
    from octavo.spark.committed import OpenTransactions

_log = logging.getLogger("octavo.spark")


class ReplicaLog:
    """An open replica. It remembers the open transactions that earlier looks found."""

    def __init__(self, replica: Replica, checkpoints: WatchedCheckpoints) -> None:
        """Open the log of a replica. Raises `BadDirectory`."""
        self.replica = replica
        self.log: Final = replica.open(checkpoints)
        self._transactions: OpenTransactions | None = None

    def last_stable_offset(self, bound: int, on_corruption: OnCorruption) -> int:
        """Return the offset, at most `bound`, below which all transactions are decided. Raises `CorruptFile`."""
        if self._transactions is None:
            from octavo.spark.committed import OpenTransactions  # imports NumPy, which not every query needs

            self._transactions = OpenTransactions(on_corruption)
        return self._transactions.last_stable_offset(self.replica.root.storage(), self.log, bound)


class _Candidate(NamedTuple):
    """A replica with its leader epochs, by which replicas are compared."""

    opened: ReplicaLog
    epochs: LeaderEpochs

    @property
    def end_offset(self) -> int:
        return self.opened.log.end_offset

    @property
    def rank(self) -> tuple[int, int]:
        latest = self.epochs.latest
        return (UNDEFINED if latest is None else latest.epoch, self.end_offset)


class ReplicaLogs:
    """The replicas of one partition. They stay open from one look to the next."""

    def __init__(self, checkpoints: dict[Place, WatchedCheckpoints]) -> None:
        """Open nothing yet: `look` opens the replicas. `checkpoints` are shared with other partitions."""
        self._checkpoints: Final = checkpoints
        self._opened: dict[Place, ReplicaLog] = {}
        self._told: set[tuple[Place, int]] = set()  # divergences that were reported, so that each is reported once

    def look(self, replicas: Sequence[Replica]) -> ReplicaLog | None:
        """Return the replica to read, as it is now; None if all are empty. Raises `InvalidInput`, `BadDirectory`."""
        places = [replica.place for replica in replicas]
        if len(replicas) > 1 and any(place not in self._opened for place in places):
            check_ids(replicas)
        for place in self._opened.keys() - set(places):
            self._opened.pop(place).log.close()
        found = [opened for replica in replicas if (opened := self._look_at(replica)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        candidates = [_Candidate(opened, LeaderEpochs.of(opened.log.epochs)) for opened in found]
        best = max(candidates, key=lambda candidate: candidate.rank)
        for other in candidates:
            if other is not best:
                self._report_divergence(best, other)
        return best.opened

    def _look_at(self, replica: Replica) -> ReplicaLog | None:
        """Return a replica as it is now; None if it has no segments yet, or no longer."""
        try:
            return self._open(replica)
        except BadDirectory:
            if replica.has_segments():
                return self._open(replica)
            _log.info("%s: there is nothing to read yet, or no longer", replica)
            opened = self._opened.pop(replica.place, None)
            if opened is not None:
                opened.log.close()
            return None

    def _open(self, replica: Replica) -> ReplicaLog:
        opened = self._opened.get(replica.place)
        if opened is None:
            checkpoints = self._checkpoints.setdefault(replica.directory, replica.checkpoints())
            opened = self._opened[replica.place] = ReplicaLog(replica, checkpoints)
        else:
            opened.replica = replica
            opened.log.refresh()
        return opened

    def _report_divergence(self, best: _Candidate, other: _Candidate) -> None:
        """Warn about offsets that only `other` has, the replica that is not read."""
        parting = parting_offset(best.epochs, best.end_offset, other.epochs, other.end_offset)
        replica = other.opened.replica
        if parting >= other.end_offset or (replica.place, parting) in self._told:
            return
        self._told.add((replica.place, parting))
        _log.warning(
            "%s: offsets %d to %d in %s are not in the log: its leader of epoch %s was replaced. %s is read",
            replica.partition,
            parting,
            other.end_offset - 1,
            replica,
            "unknown" if other.epochs.latest is None else other.epochs.latest.epoch,
            best.opened.replica,
        )

    def close(self) -> None:
        """Close all files."""
        for opened in self._opened.values():
            opened.log.close()
        self._opened.clear()


class Clusters:
    """The cluster ids of data directories. The `meta.properties` of each directory is read once."""

    def __init__(self) -> None:
        self._known: dict[Place, MetaProperties | None] = {}

    def check(self, found: Replicas) -> None:
        """Check the cluster ids. Raises `BadDirectory` if a topic is found in directories of different clusters.

        Partitions of two clusters are neither replicas of each other nor parts of one topic, whatever their names.
        """
        topics: dict[str, dict[Place, Replica]] = {}
        for replicas in found.values():
            for replica in replicas:
                folders = topics.setdefault(replica.partition.topic, {})
                folders.setdefault(replica.directory, replica)
        shared = [folders for folders in topics.values() if len(folders) > 1]
        new = {place: each for folders in shared for place, each in folders.items() if place not in self._known}
        self._known |= zip(new, in_threads(_identity, new.values()), strict=True)
        for folders in shared:
            known = ((replica, self._known[place]) for place, replica in folders.items())
            check_one_cluster((str(replica), identity) for replica, identity in known if identity is not None)


def _identity(replica: Replica) -> MetaProperties | None:
    return read_meta_properties(replica.root.storage(), replica.folder.parent)


def check_ids(replicas: Iterable[Replica]) -> None:
    """Check the topic ids of replicas. Raises `InvalidInput` if folders of the same name belong to different topics."""
    ids: dict[UUID, Replica] = {}
    for replica in replicas:
        topic_id = read_topic_id(replica.root.storage(), replica.folder)
        if topic_id is not None:
            ids.setdefault(topic_id, replica)
    if len(ids) > 1:
        places = " and ".join(map(str, ids.values()))
        topic = next(iter(ids.values())).partition.topic
        raise InvalidInput(f"{places} are not replicas: they belong to different topics named {topic!r}; read one")


def parting_offset(ours: LeaderEpochs, our_end: int, theirs: LeaderEpochs, their_end: int) -> int:
    """Find the offset where two replicas diverge, as a follower does: epoch by epoch, from its last epoch backwards."""
    for entry in reversed(theirs.entries):
        answer = ours.end_offset_for(entry.epoch, our_end)
        their_last = theirs.end_offset_for(answer.epoch, their_end)
        if answer.epoch == their_last.epoch != UNDEFINED:
            return min(answer.end_offset, their_last.end_offset, their_end)
    return theirs.entries[0].start_offset if theirs.entries else min(our_end, their_end)
