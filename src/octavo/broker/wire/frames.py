"""The header of a request, and the header of its response.

frame             size: int32, then as many bytes
request header    api key: int16, api version: int16, correlation id: int32, client id: nullable string (int16 length);
                  then tagged fields, if the version of the API is flexible
response header   correlation id: int32; then tagged fields, if it is flexible; never for ApiVersions
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from octavo.broker.wire.api_keys import API_VERSIONS, APIS, MEMBER_APIS, PRODUCE, Api
from octavo.broker.wire.primitives import skip_tagged, take
from octavo.errors import MalformedRequest
from octavo.records.text import read_text

SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_CORRELATION: Final = struct.Struct(">i")
_CLIENT_ID_AT: Final = _HEADER.size
# Such a request becomes an object for every few bytes, and nobody else is served meanwhile.
_MAX_WITHOUT_RECORDS: Final = 2 << 20
_CLIENT_IDS: Final = 64


class RequestHeader(NamedTuple):
    """The header of a request, and where its body begins."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_at: int


def read_header(frame: memoryview, apis: Mapping[int, Api] = APIS) -> RequestHeader:
    """Read the header of a request. Raises `MalformedRequest`, also for an API or a version that is not in `apis`.

    ApiVersions is the exception: its versions are not checked, because that of the first request is a guess. The
    header of an unknown version ends after the client id here, and the body must not be read.
    """
    try:
        api_key, version, correlation_id, length = _HEADER.unpack_from(frame)
    except struct.error:
        raise MalformedRequest(f"a request of {len(frame)} bytes is shorter than its header") from None
    api = apis.get(api_key)
    if api is None:
        raise MalformedRequest(f"API {api_key} is not served")
    if len(frame) > _MAX_WITHOUT_RECORDS and api_key != PRODUCE:
        raise MalformedRequest(f"{api.name} requests of {len(frame)} bytes are not served")
    client_id, position = None, _CLIENT_ID_AT
    if length >= 0:
        text, position = take(frame, position, length)
        client_id = _client_id(bytes(text))
    if not api.first <= version <= api.last:
        if api_key != API_VERSIONS:
            raise MalformedRequest(f"version {version} of {api.name} is not served")
    elif version >= api.flexible:
        position = skip_tagged(frame, position)
    return RequestHeader(api_key, version, correlation_id, client_id, position)


_client_id: Final = lru_cache(_CLIENT_IDS)(read_text)  # a client has one for all its requests


def response_header(header: RequestHeader) -> bytes:
    """Return the header of the response to a request."""
    correlation_id = _CORRELATION.pack(header.correlation_id)
    return correlation_id + b"\0" if _is_flexible_answer(header) else correlation_id


def response_header_size(header: RequestHeader, response: memoryview) -> int:
    """Return the size of the header that a response to a request begins with. Raises `MalformedRequest`."""
    data, position = take(response, 0, _CORRELATION.size)
    if _CORRELATION.unpack(data)[0] != header.correlation_id:
        raise MalformedRequest("the answer is to another request")
    return skip_tagged(response, position) if _is_flexible_answer(header) else position


def write_request_header(header: RequestHeader) -> bytes:
    """Return the bytes of the header of a request, without the size before it."""
    client_id = b"" if header.client_id is None else header.client_id.encode("utf-8", "surrogateescape")
    length = -1 if header.client_id is None else len(client_id)
    start = _HEADER.pack(header.api_key, header.version, header.correlation_id, length)
    is_flexible = header.version >= MEMBER_APIS[header.api_key].flexible
    return start + client_id + (b"\0" if is_flexible else b"")


def _is_flexible_answer(header: RequestHeader) -> bool:
    return header.version >= MEMBER_APIS[header.api_key].flexible and header.api_key != API_VERSIONS
