"""Follow the metadata log of the controllers: `Observer` finds their leader, and says what to append and to apply.

    asked = observer.next_request(now_ms)           # which node, and what; None if there is nothing to ask
    effects = observer.fetched(answer, now_ms)      # or `fetched_snapshot`, or `failed` if there was no answer
    effects = observer.moved(end_offset=..., ...)   # the log was appended to or cut; or `loaded`: a snapshot is in use

An observer is no voter, and elects nobody. Every error names the leader as far as the node knows, so any bootstrap
server leads to it. Records beyond the high watermark are not committed: they go into the log, and may be cut again, but
are not applied. One request is under way at a time, and an effect that changes the log is carried out before the next.

Epochs only grow, with one exception: an epoch that most of the controllers do not know, and of which the log has no
record, never was one. It comes of an answer that was damaged, or a damaged `quorum-state`, and nobody would ever answer
as its leader. (Kafka's brokers then look for a leader until somebody removes the file.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from octavo.cluster.messages import (
    NO_NODE,
    NO_OFFSET,
    NONE,
    CurrentLeader,
    Endpoint,
    EpochEndOffset,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
)
from octavo.errors import ErrorCode

RETRY_MS: Final = 20  # controller.quorum.retry.backoff.ms
_MAX_SNAPSHOT_SIZE: Final = 1 << 40  # more than any cluster has: a size that is larger is a mistake
_BAD_SNAPSHOT_MS: Final = 1000  # until a snapshot that was damaged is fetched again; doubled each time
_MOST_BAD_SNAPSHOTS: Final = 6  # in succession
_LOST: Final = "the controllers have lost metadata that were committed"


class Asked(NamedTuple):
    """A request, and where to send it."""

    endpoint: Endpoint
    request: MetadataFetchRequest | FetchSnapshotRequest


class NewLeader(NamedTuple):
    """Keep the epoch on the disk (`quorum-state`). `leader_id` is -1 while the leader is not known."""

    leader_epoch: int
    leader_id: int


class AppendMetadata(NamedTuple):
    """Append batches to the metadata log. An incomplete one at the end is dropped. Then call `moved`."""

    records: bytes | memoryview
    leader_epoch: int


class TruncateMetadata(NamedTuple):
    """Remove from the log what the leader does not have, as `Log.truncate_to_epoch` does. Then call `moved`."""

    diverging_epoch: EpochEndOffset


class WriteSnapshot(NamedTuple):
    """Write a part of a snapshot to its file."""

    snapshot_id: SnapshotId
    position: int
    data: bytes | memoryview


class LoadSnapshot(NamedTuple):
    """The snapshot is complete: replace the metadata by it, and the log by an empty one at its end. Then call `loaded`.

    Offsets of the records in it mean nothing. Call `refused_snapshot` if it cannot be read.
    """

    snapshot_id: SnapshotId


class Apply(NamedTuple):
    """Apply all records before an offset, and publish what they change.

    is_caught_up: nothing that is committed is missing. Before that is so for the first time, nothing is published
    """

    end_offset: int
    is_caught_up: bool


class Stop(NamedTuple):
    """The broker cannot be a member of this cluster, or committed metadata were lost."""

    reason: str


Effect = NewLeader | AppendMetadata | TruncateMetadata | WriteSnapshot | LoadSnapshot | Apply | Stop


class _Download(NamedTuple):
    snapshot_id: SnapshotId
    position: int


class Observer:
    """A node that follows the metadata log."""

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        *,
        voters: Mapping[int, Endpoint] | None = None,
        end_offset: int = 0,
        last_epoch: int = 0,
        leader_epoch: int = 0,
        retry_ms: int = RETRY_MS,
    ) -> None:
        """Begin with what is on the disk.

        voters: addresses by node id, where the configuration has them (`controller.quorum.voters`)
        """
        self.leader_epoch = max(leader_epoch, last_epoch)
        self.leader_id = NO_NODE
        self.controller: Endpoint | None = None  # the active controller, as far as it is known
        self.high_watermark = NO_OFFSET
        self.end_offset = end_offset
        self._last_epoch = last_epoch
        self._applied = NO_OFFSET  # everything before it was applied
        self._bootstrap: Final = tuple(bootstrap)
        self._voters: Final = dict(voters or {})
        self._retry_ms: Final = retry_ms
        self._turn = 0  # which bootstrap server is next
        self._deniers: Final[dict[Endpoint, int]] = {}  # who does not know the epoch, with the newest that it knows
        self._download: _Download | None = None
        self._is_busy = False  # an effect is being carried out
        self._is_matching = False  # the leader has confirmed that it has everything in the log
        self._is_caught_up = False
        self._asked: Endpoint | None = None  # the node that is being asked
        self._is_stopped = False
        self._bad_snapshots = 0  # in succession
        self._not_before_ms = 0

    # ------------------------------------------------------------------------------------------------------- requests

    def next_request(self, now_ms: int) -> Asked | None:
        """Return what to ask now, and whom; None if a request is under way, or it is not the time."""
        if self._asked or self._is_busy or self._is_stopped or now_ms < self._not_before_ms:
            return None
        self._asked = self.controller or self._next_bootstrap()
        if self._download is not None:
            return Asked(self._asked, FetchSnapshotRequest(self.leader_epoch, *self._download))
        request = MetadataFetchRequest(self.leader_epoch, self.end_offset, self._last_epoch, self.high_watermark)
        return Asked(self._asked, request)

    @property
    def next_ms(self) -> int | None:
        """The time of the next request; None if one is under way, or an effect is being carried out."""
        is_waiting = self._asked is not None or self._is_busy or self._is_stopped
        return None if is_waiting else self._not_before_ms

    def failed(self, now_ms: int) -> None:
        """Note that the node did not answer: another one may know of a new leader."""
        self._asked = None
        self.controller = None
        self._download = None
        self._retry(now_ms)

    # -------------------------------------------------------------------------------------------------------- answers

    def fetched(self, answer: MetadataFetchAnswer, now_ms: int) -> list[Effect]:
        """Take the answer to a Fetch."""
        asked, self._asked = self._asked, None
        if answer.top_error_code != NONE:
            return self._take_top_error(answer.top_error_code, now_ms)
        effects = self._take_leader(answer.current_leader, answer.node_endpoints)
        if answer.error_code == ErrorCode.INVALID_REQUEST:
            return [*effects, self._stop("a controller takes the Fetch of the metadata log for invalid")]
        if answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH and asked is not None:
            effects += self._doubt_epoch(asked, answer.current_leader.leader_epoch)
        if answer.error_code == NONE and not effects:
            self.controller = self.controller or asked  # only the leader has such an answer
            return self._take_log(answer, now_ms)
        if self.controller in (None, asked):  # otherwise there is another one to ask, at once
            self.controller = None
            self._retry(now_ms)
        return effects

    def _take_log(self, answer: MetadataFetchAnswer, now_ms: int) -> list[Effect]:
        if answer.diverging_epoch is not None:
            if answer.diverging_epoch.end_offset < self._applied:
                return [self._stop(_LOST)]
            self._is_busy, self._is_matching = True, False  # what remains may not match either
            return [TruncateMetadata(answer.diverging_epoch)]
        if answer.snapshot_id is not None:
            if answer.snapshot_id.end_offset < max(self.end_offset, self._applied):
                self._retry(now_ms)  # an old one cannot be what is missing
            else:
                self._download = _Download(answer.snapshot_id, 0)
            return []
        self._is_matching = True
        self.high_watermark = max(self.high_watermark, answer.high_watermark)
        if answer.records:
            self._is_busy = True
            return [AppendMetadata(answer.records, self.leader_epoch)]
        return self._apply()

    def fetched_snapshot(self, answer: FetchSnapshotAnswer, now_ms: int) -> list[Effect]:
        """Take the answer to a FetchSnapshot. After any error, Fetch names the newest snapshot."""
        self._asked = None
        download, self._download = self._download, None
        effects = self._take_leader(answer.current_leader, answer.node_endpoints)
        if download is None or effects or not _continues(answer, download):
            self._retry(now_ms)
            return effects
        size = len(answer.unaligned_records)
        written = WriteSnapshot(download.snapshot_id, download.position, answer.unaligned_records)
        if download.position + size < answer.size:
            self._download = download._replace(position=download.position + size)
            return [written]
        self._is_busy = True
        return [written, LoadSnapshot(download.snapshot_id)]

    def moved(self, *, end_offset: int, last_epoch: int, now_ms: int) -> list[Effect]:
        """Note where the log ends after it was appended to or cut, and the epoch of its last batch."""
        self._is_busy = False
        if end_offset < self._applied:
            return [self._stop(_LOST)]
        if end_offset == self.end_offset:  # nothing in the answer was of use
            self._retry(now_ms)
        self.end_offset, self._last_epoch = end_offset, last_epoch
        return self._apply()

    def loaded(self, snapshot_id: SnapshotId) -> list[Effect]:
        """Note that the metadata were replaced by a snapshot, and that the log is empty and begins at its end."""
        self._is_busy, self._is_matching = False, True
        self._bad_snapshots = 0
        self.end_offset, self._last_epoch = snapshot_id
        self._applied = snapshot_id.end_offset
        return self._apply()

    def refused_snapshot(self, reason: str, now_ms: int) -> list[Effect]:
        """Note that a snapshot makes no sense. It is fetched again, later each time, and at last given up."""
        self._is_busy = False
        self._bad_snapshots += 1
        if self._bad_snapshots == _MOST_BAD_SNAPSHOTS:
            return [self._stop(reason)]
        self._not_before_ms = now_ms + (_BAD_SNAPSHOT_MS << (self._bad_snapshots - 1))
        return []

    # -------------------------------------------------------------------------------------------------------- details

    def _apply(self) -> list[Effect]:
        if self.high_watermark == NO_OFFSET or not self._is_matching:
            return []
        end_offset = min(self.high_watermark, self.end_offset)
        is_caught_up = end_offset == self.high_watermark
        if end_offset <= self._applied and (self._is_caught_up or not is_caught_up):
            return []
        self._applied = max(self._applied, end_offset)
        self._is_caught_up |= is_caught_up
        return [Apply(end_offset, is_caught_up)]

    def _take_leader(self, leader: CurrentLeader, endpoints: Mapping[int, Endpoint]) -> list[Effect]:
        """Take the leader that a node names, unless the node knows less than this one."""
        if leader.leader_epoch < self.leader_epoch:
            return []
        is_news = leader.leader_epoch > self.leader_epoch
        if not is_news and leader.leader_id in (NO_NODE, self.leader_id):
            self.controller = self.controller or self._endpoint_of(leader.leader_id, endpoints)
            return []
        self.controller = self._endpoint_of(leader.leader_id, endpoints)
        return [self._begin_epoch(*leader)]

    def _begin_epoch(self, leader_id: int, leader_epoch: int) -> NewLeader:
        self.leader_epoch, self.leader_id = leader_epoch, leader_id
        self._download = None
        self._deniers.clear()
        return NewLeader(leader_epoch, leader_id)

    def _doubt_epoch(self, asked: Endpoint, known_epoch: int) -> list[Effect]:
        """Note that a node does not know the epoch. If most do not, go back to the newest one that they know."""
        if asked not in self._bootstrap or not self._last_epoch <= known_epoch < self.leader_epoch:
            return []
        self._deniers[asked] = known_epoch
        if len(self._deniers) <= len(self._bootstrap) // 2:
            return []
        return [self._begin_epoch(NO_NODE, max(self._deniers.values()))]

    def _endpoint_of(self, node_id: int, endpoints: Mapping[int, Endpoint]) -> Endpoint | None:
        return endpoints.get(node_id) or self._voters.get(node_id)

    def _take_top_error(self, error_code: int, now_ms: int) -> list[Effect]:
        if error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return [self._stop("the controllers are of another cluster")]
        self.controller = None
        self._retry(now_ms)
        return []

    def _next_bootstrap(self) -> Endpoint:
        self._turn += 1
        return self._bootstrap[(self._turn - 1) % len(self._bootstrap)]

    def _retry(self, now_ms: int) -> None:
        self._not_before_ms = now_ms + self._retry_ms

    def _stop(self, reason: str) -> Stop:
        self._is_stopped = True
        return Stop(reason)


def _continues(answer: FetchSnapshotAnswer, download: _Download) -> bool:
    """Return whether an answer has the next part of a snapshot."""
    size = len(answer.unaligned_records)
    return (
        answer.top_error_code == NONE
        and answer.error_code == NONE
        and (answer.snapshot_id, answer.position) == download
        and size > 0
        and download.position + size <= answer.size <= _MAX_SNAPSHOT_SIZE
    )
