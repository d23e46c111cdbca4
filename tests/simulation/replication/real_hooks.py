"""See what a real broker does, and check it: `watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.member.following import Leader
from octavo.broker.member.leaders import Led
from octavo.broker.member.member import Member
from octavo.broker.wire.replica_fetch import FetchLimits
from octavo.cluster.follower_effects import Effect
from octavo.cluster.leading import Outcome
from octavo.cluster.replicas import Changed
from octavo.log.log import Log
from tests.simulation.replication.real_replica import RealReplica

if TYPE_CHECKING:
    from tests.simulation.replication.real_member import RealMember

RECORD_SIZE: Final = 80  # of a batch with one record, about


def watch(node: RealMember, member: Member) -> None:
    """Check what a member does as a leader, and have it fetch as little at a time as the world says."""
    leaders: Any = member.leaders
    lead, take = leaders.lead, leaders._take
    world = node.world

    def led(change: Changed, log: Log, *, epoch_start: int | None = None) -> None:
        checks, epoch = world.checks[change.partition], change.record.leader_epoch
        checks.took_role(node.number, node.life_number, epoch)
        if change.is_new_epoch:
            checks.led(node.number, epoch, RealReplica(log))
        lead(change, log, epoch_start=epoch_start)

    def taken(each: Led, outcome: Outcome) -> None:
        take(each, outcome)
        if outcome.high_watermark is not None and not each.state.is_deposed:
            world.raised(node, each.state, outcome.high_watermark)

    leaders.lead, leaders._take = led, taken
    following: Any = member.following
    limits_for = following._limits_for

    def limited(leader: Leader) -> FetchLimits:
        limits: FetchLimits = limits_for(leader)
        return limits._replace(partition_max_bytes=RECORD_SIZE * world.random.choice(world.fetch_sizes))

    following._limits_for = limited


def checked_change(change: Any, world: Any) -> Any:
    """Return how a follower changes a log, with a check that nothing below its high watermark goes."""

    def checked(log: Log, effect: Effect) -> None:
        before = log.high_watermark
        change(log, effect)
        world.checks[effect.partition].cut(0, before, RealReplica(log))

    return checked
