"""Which versions of requests a controller takes: `ControllerVersions`.

A controller is asked before anything else is (ApiVersions), and again after it has not answered: it may have been
replaced by one of another release. The requests that are always sent in one version have it beside what writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from octavo.broker.wire import api_keys, member_messages, replica_fetch
from octavo.broker.wire.messages import read_response, write_request
from octavo.cluster.messages import NONE, Endpoint

API_VERSIONS_VERSION: Final = 3
_MYSELF: Final = {"client_software_name": "octavo", "client_software_version": "1"}

# The first and the last version of each request to controllers that is written here, and its name.
_WRITTEN: Final = {
    api_keys.FETCH: ("Fetch", 17, replica_fetch.METADATA_FETCH_VERSION),
    api_keys.FETCH_SNAPSHOT: ("FetchSnapshot", 1, member_messages.FETCH_SNAPSHOT_VERSION),
    api_keys.BROKER_REGISTRATION: ("BrokerRegistration", 4, member_messages.BROKER_REGISTRATION_VERSION),
    api_keys.BROKER_HEARTBEAT: ("BrokerHeartbeat", 1, member_messages.BROKER_HEARTBEAT_VERSION),
    api_keys.ALTER_PARTITION: ("AlterPartition", 3, member_messages.ALTER_PARTITION_VERSION),
    api_keys.ALLOCATE_PRODUCER_IDS: ("AllocateProducerIds", 0, member_messages.ALLOCATE_PRODUCER_IDS_VERSION),
    api_keys.ASSIGN_REPLICAS_TO_DIRS: ("AssignReplicasToDirs", 0, member_messages.ASSIGN_REPLICAS_TO_DIRS_VERSION),
    api_keys.ENVELOPE: ("Envelope", 0, member_messages.ENVELOPE_VERSION),
}


def write_api_versions() -> bytes:
    """Return the body of an ApiVersions."""
    return write_request(api_keys.API_VERSIONS, API_VERSIONS_VERSION, _MYSELF)


class ControllerVersions:
    """The versions of requests that controllers and this broker know, by the controllers' endpoints."""

    def __init__(self) -> None:
        """Nobody was asked yet."""
        self.problem = ""  # why the one that was asked last cannot be this broker's controller
        self.served: Mapping[
            int, tuple[int, int]
        ] = {}  # the first and the last version of each request, by the last one
        self._common: Final[dict[Endpoint, Mapping[int, int]]] = {}

    def take(self, endpoint: Endpoint, body: memoryview) -> bool:
        """Take a controller's answer to ApiVersions. Returns whether it serves all that a broker has to ask.

        Raises `MalformedRequest`.
        """
        answer = read_response(api_keys.API_VERSIONS, API_VERSIONS_VERSION, body)
        if answer.error_code != NONE:
            self.problem = f"the node at {_words(endpoint)} does not tell which requests it takes"
            return False
        served = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        common: dict[int, int] = {}
        for key, (name, first, last) in _WRITTEN.items():
            lowest, highest = served.get(key, (0, -1))
            common[key] = min(last, highest)
            if common[key] < max(first, lowest):
                needed = str(last) if first == last else f"{first} to {last}"
                self.problem = (
                    f"the node at {_words(endpoint)} does not take {name} in version {needed}: controllers have to be "
                    "of Apache Kafka 3.9 or later"
                )
                return False
        self.problem, self.served = "", served
        self._common[endpoint] = common
        return True

    def forget(self, endpoint: Endpoint) -> None:
        """Forget what a controller has told: it does not answer any more, and may come back as another one."""
        self._common.pop(endpoint, None)

    def knows(self, endpoint: Endpoint) -> bool:
        """Return whether a controller has told which versions it takes."""
        return endpoint in self._common

    def version(self, endpoint: Endpoint, api_key: int) -> int:
        """Return the newest version of a request that a known controller takes and that is written here."""
        return self._common[endpoint][api_key]


def _words(endpoint: Endpoint) -> str:
    return f"{endpoint.host}:{endpoint.port}"
