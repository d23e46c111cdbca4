"""What an operator may want to know of a running broker: `ServerStatistics`."""

from __future__ import annotations

from typing import NamedTuple


class ServerStatistics(NamedTuple):
    """The state of a server at one moment. The longest times are those since they were last asked for."""

    connections: int
    waiting: int  # requests that wait for records, or for a time
    longest_turn_s: float  # how long one turn of the thread that serves all connections took: all others had to wait
    longest_request_s: float  # of one request in such a turn
    longest_api_key: int  # its API; -1 if there was no request
