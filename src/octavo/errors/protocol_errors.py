"""Errors of requests that a broker does not answer."""

from __future__ import annotations

from octavo.errors.root import OctavoError


class ConnectionRefused(OctavoError):
    """A broker closes the connection, because it can give no other sign: a produce failed that wants no answer."""


class MalformedRequest(ConnectionRefused):
    """The bytes of a request do not follow Kafka's protocol. As in Kafka, the connection is closed, with no answer."""
