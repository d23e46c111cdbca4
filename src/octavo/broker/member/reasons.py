"""Say what a broker waits for before it is a member of its cluster, and why it cannot be one."""

from __future__ import annotations

from octavo.broker.member.config import MemberSettings
from octavo.cluster.life_cycle import LifeCycle, State
from octavo.cluster.messages import NO_EPOCH, NONE
from octavo.cluster.quorum import Observer
from octavo.errors import ErrorCode


def what_is_awaited(life: LifeCycle, observer: Observer) -> str:
    """Return what a broker waits for before it may serve, in words."""
    if observer.controller is None:
        return "looking for the active controller"
    if life.broker_epoch == NO_EPOCH:
        if life.refusal == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return "waiting until the controller forgets this broker's last run"
        return "registering with the active controller"
    return "reading the metadata of the cluster" if life.state is State.STARTING else "waiting to be unfenced"


def why_not_registered(life: LifeCycle, observer: Observer, settings: MemberSettings, node_id: int) -> str:
    """Return the reason in a sentence."""
    if life.refusal == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
        return f"another broker is registered as node {node_id}, and the controller still hears of it"
    if life.refusal == ErrorCode.UNSUPPORTED_VERSION:
        return "the cluster has finalized a feature at a level that this broker does not support"
    if life.refusal == ErrorCode.INCONSISTENT_CLUSTER_ID:
        return "the controllers are of another cluster"
    if life.refusal == ErrorCode.INVALID_REGISTRATION:
        return (
            "the controller takes the registration for invalid: another broker may have the same directory.id in its "
            "meta.properties"
        )
    if life.refusal != NONE:
        names = {int(code): code.name for code in ErrorCode}
        return f"the controller refuses to register the broker ({names.get(life.refusal, life.refusal)})"
    if observer.leader_id < 0:
        places = ", ".join(f"{host}:{port}" for host, port in settings.bootstrap)
        return f"no controller answers as the active one; these were asked: {places}"
    if observer.leader_id == node_id:
        return f"node.id cannot be {node_id}: the active controller has it"
    return f"the active controller, node {observer.leader_id}, does not answer"
