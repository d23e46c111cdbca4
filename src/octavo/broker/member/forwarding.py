"""Requests that a member has the active controller answer: `Forwarding`.

The controller gets the request of a client as it is, in an Envelope that says who the client is. Its answer goes to the
client as it is. What a broker answers itself, from the metadata or from its logs, is in `octavo.broker.apis`.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.broker.answers import Parked, Parts, Wait
from octavo.broker.member.controller import ControllerChannel
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.wire import api_keys
from octavo.broker.wire.frames import RequestHeader, response_header_size, write_request_header
from octavo.broker.wire.member_messages import ENVELOPE_VERSION, read_envelope, write_envelope
from octavo.errors import ConnectionRefused, ErrorCode, MalformedRequest

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.broker.member.to_controller import ToController

# What KafkaApis passes on without looking at it. AlterConfigs and IncrementalAlterConfigs are looked at first.
FORWARDED: Final = frozenset(
    {
        api_keys.CREATE_TOPICS,
        api_keys.DELETE_TOPICS,
        api_keys.CREATE_ACLS,
        api_keys.DELETE_ACLS,
        api_keys.CREATE_PARTITIONS,
        api_keys.ELECT_LEADERS,
        api_keys.ALTER_PARTITION_REASSIGNMENTS,
        api_keys.LIST_PARTITION_REASSIGNMENTS,
        api_keys.ALTER_CLIENT_QUOTAS,
        api_keys.ALTER_USER_SCRAM_CREDENTIALS,
        api_keys.DESCRIBE_QUORUM,
        api_keys.UPDATE_FEATURES,
        api_keys.UNREGISTER_BROKER,
        api_keys.ADD_RAFT_VOTER,
        api_keys.REMOVE_RAFT_VOTER,
    }
)
_CHECKED: Final = (api_keys.ALTER_CONFIGS, api_keys.INCREMENTAL_ALTER_CONFIGS)
_NOT_SERVED: Final = (0, -1)
TIMEOUT_MS: Final = 60_000  # then the client is told REQUEST_TIMED_OUT
_ANONYMOUS: Final = b"\0\0\x05User\x0aANONYMOUS\0\0"  # version 0 of DefaultPrincipalData: no client has another name


class _Outcome(NamedTuple):
    """What became of a request: an error code, or the body of the answer."""

    code: ErrorCode
    body: bytes = b""


class Forwarding:
    """Has the active controller answer requests of clients. For the reactor's thread alone."""

    def __init__(
        self,
        channel: ControllerChannel,
        wake: Callable[[Wait], object],
        served: Callable[[], Mapping[int, tuple[int, int]]],
    ) -> None:
        """Forward nothing yet.

        wake: has an answer that waits be sent soon
        served: returns the first and the last version of each API that the controller serves
        """
        self._channel: Final = channel
        self._wake: Final = wake
        self._served: Final = served

    def versions(self) -> Mapping[int, tuple[int, int]]:
        """Return the first and the last version of each forwarded API that the controller serves.

        There are none before the first controller has told.
        """
        served = self._served()
        return {key: served.get(key, _NOT_SERVED) for key in (*FORWARDED, *_CHECKED)} if served else {}

    def forward(
        self, request: Request, body: bytes | None = None, write: Callable[[bytes], Parts] | None = None
    ) -> Parked:
        """Have the active controller answer a request.

        body: what it is asked, if that is not what the client has asked
        write: makes the answer to the client of the body of the controller's

        Raises `MalformedRequest`.
        """
        request.read()
        header = request.header
        parked = Parked(self._wake, lambda outcome: _parts(header, outcome, write))

        def answered(data: memoryview) -> bool:
            outcome = _read(header, data)
            if outcome is None:
                return False
            parked.give(outcome)
            return True

        self._channel.ask(
            api_keys.ENVELOPE,
            ENVELOPE_VERSION,
            envelope(request, header, bytes(request.body) if body is None else body),
            answered=answered,
            failed=lambda reason: parked.give(_Outcome(ErrorCode.REQUEST_TIMED_OUT)),
            timeout_ms=TIMEOUT_MS,
        )
        return parked


def forward(broker: Broker, request: Request) -> Parked:
    """Answer a request by the answer of the active controller."""
    return to_controller(broker).forwarding.forward(request)


def to_controller(broker: Broker) -> ToController:
    """Return what has a member's requests answered by the controller."""
    assert broker.controller is not None, "no request is answered before the member is complete"
    return broker.controller


def envelope(request: Request, header: RequestHeader, body: bytes) -> bytes:
    """Return the body of an Envelope with something that the client of a request asks."""
    return write_envelope(write_request_header(header) + body, _ANONYMOUS, _address(request.client.peer))


def _address(peer: str) -> bytes:
    """Return the address of a client as Java has it: one of IPv4 has four bytes, also where the socket is of IPv6."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).packed


def _read(header: RequestHeader, data: memoryview) -> _Outcome | None:
    """Return what an answer to an Envelope says; None if it is not from the active controller."""
    code, response = read_envelope(data)
    if code == ErrorCode.NOT_CONTROLLER:
        return None
    if code == ErrorCode.UNSUPPORTED_VERSION:
        return _Outcome(ErrorCode.UNSUPPORTED_VERSION)
    if code != ErrorCode.NONE or response is None:
        return _Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        return _Outcome(ErrorCode.NONE, response[response_header_size(header, memoryview(response)) :])
    except (MalformedRequest, struct.error):
        return _Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)


def _parts(header: RequestHeader, outcome: _Outcome, write: Callable[[bytes], Parts] | None) -> Parts:
    """Return the answer to a client. Raises `Refused` and `ConnectionRefused`."""
    if outcome.code is ErrorCode.UNSUPPORTED_VERSION:
        name = api_keys.MEMBER_APIS[header.api_key].name
        raise ConnectionRefused(f"the active controller does not serve version {header.version} of {name}")
    if outcome.code is not ErrorCode.NONE:
        raise Refused(outcome.code, None)
    return [outcome.body] if write is None else write(outcome.body)
