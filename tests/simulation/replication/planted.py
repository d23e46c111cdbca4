"""Mistakes that the simulation has to find: each is planted into the classes of `octavo.cluster`, or into the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from octavo.cluster import leading
from octavo.cluster.following import Fetcher
from octavo.cluster.leading import LedPartition
from octavo.cluster.messages import NO_EPOCH, NONE, BrokerState, FetchPartition
from octavo.cluster.quorum import Apply, Observer
from octavo.cluster.remote_replica import RemoteReplica
from octavo.log.directory.member_directory import MemberDirectory
from tests.simulation.replication.member import Member
from tests.simulation.replication.plots import ChangeForALostDisk, LateAnswer, Plot
from tests.simulation.replication.real_member import RealMember

Plant = Callable[[pytest.MonkeyPatch], None]
Led = LedPartition


def committed_isr(patch: pytest.MonkeyPatch) -> None:
    """The high watermark is that of the committed replicas in sync, not of the maximal ones."""
    patch.setattr(Led, "maximal_isr", property(lambda led: led.isr))
    # A replica that is about to join would hold it back as well.
    patch.setattr(RemoteReplica, "is_caught_up", lambda self, end, now, lag: self.log_end_offset == end)


def early_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    """Records are acknowledged as soon as they are appended."""
    patch.setattr(Led, "acknowledgement", lambda led, end_offset: NONE)


def truncation_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A new follower cuts its log at its high watermark."""
    follow = Fetcher.follow

    def cutting(self: Fetcher, partition: Any, at: FetchPartition, high_watermark: int) -> Any:
        return follow(self, partition, at._replace(last_fetched_epoch=NO_EPOCH), high_watermark)

    patch.setattr(Fetcher, "follow", cutting)


def shrunk_at_once(patch: pytest.MonkeyPatch) -> None:
    """A replica that is out of sync does not count from when the controller is asked."""
    shrink = Led._shrink

    def at_once(led: LedPartition, now_ms: int) -> Any:
        change = shrink(led, now_ms)
        if change is not None:
            isr = frozenset(member.broker_id for member in change.asked.new_isr_with_epochs)
            led.pending = change = change._replace(maximal_isr=isr)
        return change

    patch.setattr(Led, "_shrink", at_once)


def acknowledged_after_the_end(patch: pytest.MonkeyPatch) -> None:
    """A leader that was deposed tells producers that all is well."""
    patch.setattr(
        Led, "acknowledgement", lambda led, end: NONE if led.is_deposed or led.high_watermark >= end else None
    )


def clean_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    """A broker claims that it was stopped cleanly."""
    kill = Member.kill

    def claiming(member: Member, *, wipe: bool) -> None:
        kill(member, wipe=wipe)
        member.previous_epoch = member.life.clean_epoch

    claimed: dict[int, int] = {}
    kill_real = RealMember.kill

    def dying(member: RealMember, *, wipe: bool) -> None:
        claimed[member.number] = member.broker_epoch
        kill_real(member, wipe=wipe)

    patch.setattr(RealMember, "kill", dying)
    claim = property(lambda directory: claimed.get(directory.node_id, NO_EPOCH))
    patch.setattr(MemberDirectory, "epoch_of_clean_shutdown", claim)
    patch.setattr(Member, "kill", claiming)


def last_epoch_ignored(patch: pytest.MonkeyPatch) -> None:
    """A follower does not say which epoch its last record has."""
    moved, follow = Fetcher.moved, Fetcher.follow

    def silent(self: Fetcher, partition: Any, **where: int) -> None:
        moved(self, partition, **{**where, "last_fetched_epoch": NO_EPOCH})

    def following(self: Fetcher, partition: Any, at: FetchPartition, high_watermark: int) -> Any:
        return follow(self, partition, at._replace(last_fetched_epoch=NO_EPOCH), at.fetch_offset)

    patch.setattr(Fetcher, "moved", silent)
    patch.setattr(Fetcher, "follow", following)


def late_answer(patch: pytest.MonkeyPatch) -> None:
    """The controller's answer counts, whatever newer metadata say."""

    def taken(led: LedPartition, change: Any, answer: Any, now_ms: int) -> Any:
        led.pending = None if change is led.pending else led.pending
        if answer.error_code == NONE:
            led.isr, led.partition_epoch = frozenset(answer.isr), answer.partition_epoch
        return leading.Outcome(led._raise_high_watermark(now_ms))

    patch.setattr(Led, "settled", taken)


def uncommitted_metadata(patch: pytest.MonkeyPatch) -> None:
    """Metadata count as soon as they are in the log."""

    def apply(observer: Observer) -> list[Apply]:
        return [Apply(observer.end_offset, is_caught_up=True)] if observer.end_offset else []

    patch.setattr(Observer, "_apply", apply)


def old_broker_epoch(patch: pytest.MonkeyPatch) -> None:
    """A leader does not look at the broker epochs of its followers."""
    refusal, with_epoch = Led.refusal, Led._with_epoch

    def accepting(led: LedPartition, replica_id: int, replica_epoch: int, current_leader_epoch: int) -> int:
        return refusal(led, replica_id, NO_EPOCH, current_leader_epoch)

    def eligible(led: LedPartition, replica_id: int, replica: RemoteReplica) -> bool:
        broker = led._cluster.brokers.get(replica_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def without_epoch(led: LedPartition, replica_id: int) -> BrokerState:
        return with_epoch(led, replica_id)._replace(broker_epoch=NO_EPOCH)

    patch.setattr(Led, "refusal", accepting)
    patch.setattr(Led, "_is_eligible", eligible)
    patch.setattr(Led, "_with_epoch", without_epoch)


PLANTED: Final[dict[str, Plant]] = {
    plant.__name__: plant
    for plant in (
        committed_isr,
        early_acknowledgement,
        truncation_to_the_high_watermark,
        old_broker_epoch,
        shrunk_at_once,
        uncommitted_metadata,
        acknowledged_after_the_end,
        clean_after_a_crash,
        last_epoch_ignored,
        late_answer,
    )
}
# Those that real brokers show within a few runs, and within some more.
PLANTED_IN_REAL: Final = ("committed_isr", "shrunk_at_once", "acknowledged_after_the_end", "last_epoch_ignored")
RARE_IN_REAL: Final = (
    "early_acknowledgement",
    "truncation_to_the_high_watermark",
    "uncommitted_metadata",
    "clean_after_a_crash",
)
# Those that they show in a certain order of faults.
PLOTTED_IN_REAL: Final[dict[str, type[Plot]]] = {"old_broker_epoch": ChangeForALostDisk, "late_answer": LateAnswer}
