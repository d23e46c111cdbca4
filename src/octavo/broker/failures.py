"""What a client is told of an exception: Kafka's error code for it, in the form that the API has for errors.

A handler answers what it knows to go wrong itself, and raises `Refused` if the whole request is refused. Everything
else is a fault of the disk, or of ours; the operator is told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Later, Parts, Wait
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.troubles import storage_error
from octavo.broker.wire.api_keys import MEMBER_APIS, PRODUCE
from octavo.broker.wire.error_forms import error_content
from octavo.broker.wire.messages import write_response
from octavo.errors import ConnectionRefused, ErrorCode, FormatError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_NOTHING: Final = memoryview(b"")
_NO_ANSWER: Final = 0  # the acks of a produce that wants none


def error_code(error: Exception) -> ErrorCode:
    """Return Kafka's code for an exception."""
    if isinstance(error, Refused):
        return error.code
    if isinstance(error, FormatError):  # of our own files: requests are checked
        return ErrorCode.KAFKA_STORAGE_ERROR
    return storage_error(error)


def failed(broker: Broker, request: Request, error: Exception) -> Parts:
    """Return the answer to a request for which a handler has raised an exception.

    Raises `ConnectionRefused` where there is no other answer: the request was malformed, or wants none.
    """
    if isinstance(error, ConnectionRefused):
        raise error
    header = request.header
    code = error_code(error)
    if not isinstance(error, Refused):
        name = MEMBER_APIS[header.api_key].name
        broker.notices.say(name, f"a {name} request from {request.client.peer} failed: {error!r}")
    asked = request.read()
    if header.api_key == PRODUCE and asked.acks == _NO_ANSWER:
        raise ConnectionRefused(f"a produce without acknowledgement failed with {code.name}")
    message = error.message if isinstance(error, Refused) else None
    return [
        write_response(
            header.api_key, header.version, error_content(header.api_key, header.version, asked, code, message)
        )
    ]


def guarded(broker: Broker, head: bytes, request: Request, answer: Wait | Later) -> Wait | Later:
    """Return what becomes an answer later, with the header before it, and an answer to exceptions that are raised."""
    if isinstance(answer, Later):
        return Later(guarded_work(broker, head, answer.kept or request.kept(), answer.work), answer.kind)
    kept = request.kept() if answer.keeps_request else request._replace(body=_NOTHING)
    answer.retry = guarded_retry(broker, head, kept, answer.retry)
    return answer


def guarded_retry(
    broker: Broker, head: bytes, request: Request, retry: Callable[[bool], Answer]
) -> Callable[[bool], Answer]:
    """Return `retry` with the header before its answer, and an answer to the exceptions that it raises."""

    def with_head(is_over: bool) -> Answer:
        try:
            answer = retry(is_over)
        except Exception as error:
            answer = failed(broker, request, error)
        if answer is None:
            return None
        return [head, *answer] if isinstance(answer, list) else guarded(broker, head, request, answer)

    return with_head


def guarded_work(
    broker: Broker, head: bytes, request: Request, work: Callable[[], Parts | Wait | None]
) -> Callable[[], Parts | Wait | None]:
    """Return `work` with the header before its answer, and an answer to the exceptions that it raises."""

    def with_head() -> Parts | Wait | None:
        try:
            parts = work()
        except Exception as error:
            parts = failed(broker, request, error)
        if isinstance(parts, Wait):
            kept = request if parts.keeps_request else request._replace(body=_NOTHING)
            parts.retry = guarded_retry(broker, head, kept, parts.retry)
            return parts
        return None if parts is None else [head, *parts]

    return with_head
