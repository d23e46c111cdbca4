"""Addresses of brokers, as people write them."""

from __future__ import annotations

import pytest

from octavo.client.cluster import parse_servers
from octavo.errors import InvalidInput


def test_addresses() -> None:
    assert parse_servers("a:1, [::1]:65535,") == [("a", 1), ("::1", 65535)]


@pytest.mark.parametrize("text", ["", ",", "host", "host:", ":9092", "host:0", "host:65536", "host:x", "a:1,b"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(InvalidInput, match="no address of a broker"):
        parse_servers(text)
