"""Make the broker of a server a member of its cluster: `open_as_member` and `make_member`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields
from pathlib import Path
from typing import Final

from octavo.broker.answers import Work
from octavo.broker.broker import Broker
from octavo.broker.config import CONTROLLER_LISTENERS, METADATA_DIR, Settings, read_node_id
from octavo.broker.listeners import PLAINTEXT, Address, controller_protocol
from octavo.broker.member.config import INTER_BROKER, MemberConfig, MemberSettings
from octavo.broker.member.member import Member
from octavo.broker.wire.api_keys import DESCRIBE_CLUSTER
from octavo.client.connection import BrokerConnection
from octavo.cluster.messages import NONE
from octavo.cluster.messages import Listener as Advertised
from octavo.errors import BrokerUnreachable, CannotJoin, ErrorCode, InvalidConfig, RequestFailed
from octavo.log.directory.member_directory import MemberDirectory, open_member
from octavo.log.followed.own_snapshots import MetadataLimits
from octavo.log.recovery_report import OnProgress
from octavo.server.acceptor import Listener
from octavo.server.reactor import Reactor

_CONTROLLERS: Final = 2  # the kind of endpoints that DescribeCluster is asked for
_PATIENCE_S: Final = 2.0  # with one controller
_PAUSE_S: Final = 0.2
_LARGEST_ANSWER: Final = 1 << 20  # of whoever is at the address of a controller

OnWait = Callable[[str], object]


def open_as_member(
    settings: Settings,
    addresses: Sequence[Address],
    folders: Sequence[Path],
    on_progress: OnProgress | None,
    on_wait: OnWait | None,
    say: Callable[[str], object],
) -> MemberDirectory:
    """Open the directory of a member. Raises as `open_member` does, `InvalidConfig` and `CannotJoin`."""
    member, node_id = settings.member, read_node_id(settings.properties)
    assert member is not None
    assert node_id is not None  # which `read_member` has checked
    _check(settings, member, addresses, folders)
    return open_member(
        folders,
        node_id=node_id,
        new_cluster_id=lambda: find_cluster_id(member, on_wait),
        broker_config=settings.properties,
        limits=_limits(member.config),
        on_damage=say,
        on_progress=on_progress,
    )


def _limits(config: MemberConfig) -> MetadataLimits:
    return MetadataLimits(**{each.name: getattr(config, each.name) for each in fields(MetadataLimits)})


def _check(settings: Settings, member: MemberSettings, addresses: Sequence[Address], folders: Sequence[Path]) -> None:
    """Check what a member needs besides its own settings. Raises `InvalidConfig`."""
    names, name = [each.name for each in addresses], member.inter_broker_listener
    if name not in names:
        why = f"it must be one of the listeners, which are {', '.join(names)}: brokers reach each other by it"
        raise InvalidConfig(INTER_BROKER, name, why)
    if len(folders) > 1:
        why = "a member of a cluster has one directory, with its metadata in it"
        raise InvalidConfig("log.dirs", ",".join(map(str, folders)), why)
    protocol = controller_protocol(settings.properties)
    if protocol != PLAINTEXT:
        text = settings.properties[CONTROLLER_LISTENERS]
        raise InvalidConfig(CONTROLLER_LISTENERS, text, f"controllers are reached by {PLAINTEXT}, not {protocol}")
    metadata = settings.properties.get(METADATA_DIR, "").strip()
    if metadata and Path(metadata).resolve() != folders[0].resolve():
        raise InvalidConfig(METADATA_DIR, metadata, "a member of a cluster has its metadata in its only directory")


def find_cluster_id(settings: MemberSettings, on_wait: OnWait | None) -> str:
    """Ask the controllers for the id of their cluster. Raises `CannotJoin`."""
    until = time.monotonic() + settings.config.initial_broker_registration_timeout_ms / 1000
    problem = ""
    while True:
        for host, port in settings.bootstrap:
            if problem and on_wait is not None:
                on_wait("looking for the controllers")
            try:
                with BrokerConnection(host, port, patience_s=_PATIENCE_S, largest_answer=_LARGEST_ANSWER) as connection:
                    answer = connection.ask(DESCRIBE_CLUSTER, {"endpoint_type": _CONTROLLERS})
            except (BrokerUnreachable, RequestFailed) as error:
                problem = str(error)
                continue
            if answer.error_code == NONE:
                return str(answer.cluster_id)
            why = answer.error_message or f"error {answer.error_code}"
            problem = f"the node at {host}:{port} does not tell, {why}"
            if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
                problem += " (`kafka-storage format` makes a folder one of the cluster)"
        if time.monotonic() >= until:
            raise CannotJoin(f"no controller tells which cluster it belongs to: {problem}")
        time.sleep(_PAUSE_S)


def make_member(
    broker: Broker,
    settings: MemberSettings,
    properties: Mapping[str, str],
    listeners: Sequence[Listener],
    reactor: Reactor,
    workers: Mapping[Work, Executor],
    on_published: Callable[[], None],
    on_joined: Callable[[], None],
) -> Member:
    """Return the member that a broker will be.

    on_published: is called when the settings of its replicas are those that are committed
    on_joined: is called when it may serve, or has failed to
    """
    directory = broker.directory
    assert isinstance(directory, MemberDirectory)

    def joined() -> None:
        reactor.accept()
        on_joined()

    def end() -> None:
        if member.failure is not None and member.is_unfenced:
            broker.say(f"the broker stops: {member.failure}")
        if member.failure is not None:
            reactor.stop()
        on_joined()

    member = Member(
        broker,
        directory,
        settings,
        listeners=[Advertised(each.name, *each.advertised) for each in listeners],
        properties=properties,
        peers=reactor.peers,
        call=reactor.call,
        work=lambda kind, function: workers[kind].submit(function),
        on_published=on_published,
        on_unfenced=joined,
        on_end=end,
    )
    return member
