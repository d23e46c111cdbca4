"""Which function answers which API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer
from octavo.broker.apis.api_versions import api_versions
from octavo.broker.apis.create_topics import create_topics
from octavo.broker.apis.fetch import fetch
from octavo.broker.apis.init_producer_id import init_producer_id
from octavo.broker.apis.list_offsets import list_offsets
from octavo.broker.apis.metadata import metadata
from octavo.broker.apis.produce import produce
from octavo.broker.request import Request
from octavo.broker.wire import api_keys

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

Handler = Callable[["Broker", Request], Answer]

HANDLERS: Final[dict[int, Handler]] = {
    api_keys.PRODUCE: produce,
    api_keys.FETCH: fetch,
    api_keys.LIST_OFFSETS: list_offsets,
    api_keys.METADATA: metadata,
    api_keys.API_VERSIONS: api_versions,
    api_keys.CREATE_TOPICS: create_topics,
    api_keys.INIT_PRODUCER_ID: init_producer_id,
}
assert HANDLERS.keys() == api_keys.APIS.keys()
