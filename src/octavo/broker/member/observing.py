"""Follow the metadata log of the controllers: `Observing` asks and writes what `Observer` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from octavo.broker.member.config import MemberSettings
from octavo.broker.member.silence import Silence
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.member.versions import API_VERSIONS_VERSION, ControllerVersions, write_api_versions
from octavo.broker.wire.api_keys import API_VERSIONS, FETCH, FETCH_SNAPSHOT
from octavo.broker.wire.member_messages import FETCH_SNAPSHOT_VERSION, read_fetch_snapshot, write_fetch_snapshot
from octavo.broker.wire.replica_fetch import read_metadata_fetch, write_metadata_fetch
from octavo.cluster.messages import (
    NONE,
    Endpoint,
    FetchSnapshotAnswer,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
)
from octavo.cluster.quorum import (
    AppendMetadata,
    Apply,
    Asked,
    Effect,
    LoadSnapshot,
    NewLeader,
    Observer,
    Stop,
    TruncateMetadata,
    WriteSnapshot,
)
from octavo.errors import BadDirectory, CorruptFile, OctavoError
from octavo.log.directory.member_directory import MemberDirectory
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.metadata import cluster_log

_CHANNEL: Final = "metadata"
_POLL_MS: Final = 500  # how long a controller waits for records before it answers


def new_observer(settings: MemberSettings, metadata: FollowedMetadata) -> Observer:
    """Return an observer that begins with what is on the disk."""
    return Observer(
        settings.bootstrap,
        voters=settings.voters,
        end_offset=metadata.end_offset,
        last_epoch=metadata.last_epoch,
        leader_epoch=metadata.leader_epoch,
        retry_ms=settings.config.controller_quorum_retry_backoff_ms,
    )


class Observing:
    """Asks the controllers for metadata, and keeps them on the disk."""

    def __init__(
        self,
        observer: Observer,
        directory: MemberDirectory,
        here: Surroundings,
        versions: ControllerVersions,
        *,
        timeout_ms: int,
        may_load: Callable[[], bool],
        apply: Callable[[Apply], None],
        stop: Callable[[str], None],
        disk_failed: Callable[[OSError], None],
    ) -> None:
        """Begin with what is on the disk.

        versions: learns which versions of requests controllers take
        may_load: tells whether nobody needs the metadata to stay as they are
        apply: applies records to the metadata
        stop: is told why the broker cannot go on
        disk_failed: is told that metadata cannot be kept any more
        """
        self.observer: Final = observer
        # A snapshot is about to be loaded by another thread: nobody else may touch the metadata.
        self.is_loading = False
        self._metadata: Final = directory.metadata
        self._here: Final = here
        self._versions: Final = versions
        self._cluster_id: Final = directory.cluster_id
        self._directory_id: Final = directory.directory_id
        self._client_id: Final = f"raft-client-{here.node_id}"
        self._timeout_ms: Final = timeout_ms
        self._may_load: Final = may_load
        self._apply: Final = apply
        self._stop: Final = stop
        self._disk_failed: Final = disk_failed
        self._complete: SnapshotId | None = None  # a snapshot that waits until it may be loaded
        self._silence: Final = Silence(here.say)  # of the active controller
        self._has_refused = False  # what a controller has sent last
        self._is_writing = False  # another thread writes a snapshot

    def poll(self, now_ms: int) -> float:
        """Ask what there is to ask. Returns when there is something to do again."""
        if self._metadata.snapshot_is_due and not (self._is_writing or self.is_loading):
            self._write_snapshot()
        if self._complete is not None and self._may_load():
            self._load(self._complete)
        asked = self.observer.next_request(now_ms)
        if asked is not None:
            self._silence.asked(now_ms)
        if asked is not None and self._versions.knows(asked.endpoint):
            self._ask(asked)
        elif asked is not None:
            self._ask_versions(asked)
        next_ms = math.inf if self.observer.next_ms is None else self.observer.next_ms
        return min(next_ms, self._silence.poll(now_ms))

    def _ask_versions(self, asked: Asked) -> None:
        """Ask a controller which versions of requests it takes, and then what there is to ask."""
        endpoint = asked.endpoint

        def told(serves_all: bool) -> None:
            if serves_all:
                self._ask(asked)
            else:
                self._failed(endpoint, self._versions.problem)

        self._here.ask(
            endpoint,
            _CHANNEL,
            (API_VERSIONS, API_VERSIONS_VERSION),
            write_api_versions(),
            lambda body: self._versions.take(endpoint, body),
            told,
            partial(self._failed, endpoint),
            timeout_ms=self._timeout_ms,
            client_id=self._client_id,
        )

    def _ask(self, asked: Asked) -> None:
        endpoint, request = asked
        cluster_id, node_id, directory_id = self._cluster_id, self._here.node_id, self._directory_id
        failed = partial(self._failed, endpoint)
        if isinstance(request, MetadataFetchRequest):
            version = self._versions.version(endpoint, FETCH)
            self._here.ask(
                endpoint,
                _CHANNEL,
                (FETCH, version),
                write_metadata_fetch(
                    request, cluster_id=cluster_id, broker_id=node_id, directory_id=directory_id, version=version
                ),
                read_metadata_fetch,
                self._fetched,
                failed,
                timeout_ms=_POLL_MS + self._timeout_ms,
                client_id=self._client_id,
            )
        else:
            self._here.ask(
                endpoint,
                _CHANNEL,
                (FETCH_SNAPSHOT, FETCH_SNAPSHOT_VERSION),
                write_fetch_snapshot(request, cluster_id=cluster_id, broker_id=node_id, directory_id=directory_id),
                read_fetch_snapshot,
                self._fetched_snapshot,
                failed,
                timeout_ms=self._timeout_ms,
                client_id=self._client_id,
            )

    def _fetched(self, answer: MetadataFetchAnswer) -> None:
        effects = self.observer.fetched(answer, self._here.now_ms())
        if answer.top_error_code == NONE and answer.error_code == NONE:  # only the active controller has such an answer
            self._silence.who = f"the active controller, node {self.observer.leader_id},"
            self._silence.heard(self._here.now_ms())
        self._carry_out(effects)

    def _fetched_snapshot(self, answer: FetchSnapshotAnswer) -> None:
        self._silence.heard(self._here.now_ms())
        self._carry_out(self.observer.fetched_snapshot(answer, self._here.now_ms()))

    def _failed(self, endpoint: Endpoint, reason: str) -> None:
        self._versions.forget(endpoint)
        self.observer.failed(self._here.now_ms())

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            try:
                self._do(effect)
            except Exception as error:  # a mistake of ours, too: no metadata would be followed any more
                what = error if isinstance(error, OctavoError | OSError) else repr(error)
                self._give_up(f"metadata cannot be kept: {what}", error)
                return

    def _give_up(self, reason: str, error: Exception) -> None:
        if isinstance(error, OSError):
            self._disk_failed(error)
        else:
            self._stop(reason)

    def _do(self, effect: Effect) -> None:
        metadata = self._metadata
        if isinstance(effect, NewLeader):
            metadata.keep_leader(*effect)
        elif isinstance(effect, AppendMetadata):
            self._append(effect)
            self._moved()
        elif isinstance(effect, TruncateMetadata):
            metadata.truncate(*effect.diverging_epoch)
            self._moved()
        elif isinstance(effect, WriteSnapshot):
            metadata.write_snapshot(cluster_log.SnapshotId(*effect.snapshot_id), effect.position, effect.data)
        elif isinstance(effect, LoadSnapshot):
            self.is_loading, self._complete = True, effect.snapshot_id
            self._here.poke()
        elif isinstance(effect, Apply):
            self._apply(effect)
        else:
            assert isinstance(effect, Stop)
            self._stop(effect.reason)

    def _append(self, effect: AppendMetadata) -> None:
        """Append what a controller has sent; nothing if it was damaged on its way: then it is asked for again."""
        try:
            self._metadata.append(effect.records, effect.leader_epoch)
        except BadDirectory as error:
            if not self._has_refused:
                self._here.say(f"metadata are asked for again: {error}")
            self._has_refused = True
        else:
            self._has_refused = False

    def _moved(self) -> None:
        end_offset, last_epoch = self._metadata.end_offset, self._metadata.last_epoch
        effects = self.observer.moved(end_offset=end_offset, last_epoch=last_epoch, now_ms=self._here.now_ms())
        self._carry_out(effects)

    def _load(self, snapshot_id: SnapshotId) -> None:
        """Have another thread load a snapshot: it may have many topics."""
        self._complete = None

        def load() -> None:
            error: Exception | None = None
            try:
                self._metadata.load_snapshot(cluster_log.SnapshotId(*snapshot_id))
            except Exception as raised:  # a mistake of ours, too: nobody would ever hear of it
                error = raised
            self._here.call(lambda: self._loaded(snapshot_id, error))

        self._here.elsewhere(load)

    def _loaded(self, snapshot_id: SnapshotId, error: Exception | None) -> None:
        self.is_loading = False
        self._here.poke()
        if isinstance(error, CorruptFile):
            reason = f"the snapshot of the metadata that a controller has sent cannot be read: {error}"
            self._here.say(reason)
            self._carry_out(self.observer.refused_snapshot(reason, self._here.now_ms()))
        elif error is not None:
            self._give_up(f"the snapshot of the metadata cannot be loaded: {error}", error)
        else:
            self._carry_out(self.observer.loaded(snapshot_id))

    def _write_snapshot(self) -> None:
        """Have another thread write a snapshot of what was applied: it may be large."""
        self._is_writing = True

        def write() -> None:
            error: Exception | None = None
            try:
                self._metadata.write_own_snapshot()
            except Exception as raised:  # a mistake of ours, too: nobody would ever hear of it
                error = raised
            self._here.call(lambda: self._written(error))

        self._here.elsewhere(write)

    def _written(self, error: Exception | None) -> None:
        self._is_writing = False
        self._here.poke()
        if error is not None:
            self._give_up(f"a snapshot of the metadata cannot be written: {error}", error)
