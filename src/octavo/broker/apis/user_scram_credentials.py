"""DescribeUserScramCredentials (50), AlterUserScramCredentials (51): what verifies the passwords of users.

Credentials are kept in the metadata as Kafka keeps them, so that a Kafka that takes over knows its users. Nobody is
asked for a password here.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.broker.answers import Later, Parts
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError
from octavo.schemas.metadata.access import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from octavo.schemas.metadata.record import MetadataRecord

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


class _Mechanism(NamedTuple):
    hash: str
    fewest_iterations: int


_MECHANISMS: Final = {1: _Mechanism("sha256", 4096), 2: _Mechanism("sha512", 4096)}
_MOST_ITERATIONS: Final = 16384


def describe_user_scram_credentials(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeUserScramCredentials request."""
    asked = request.read()
    known = broker.image.credentials
    users = [each.name for each in asked.users or ()] or [name for name, _ in known]
    counts = Counter(each.name for each in asked.users or ())
    results: list[dict[str, Any]] = []
    for user in dict.fromkeys(users):
        found = [
            {"mechanism": mechanism, "iterations": each.iterations}
            for (name, mechanism), each in known.items()
            if name == user
        ]
        error, message = 0, ""
        if counts[user] > 1:
            error, found = ErrorCode.DUPLICATE_RESOURCE, []
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        elif not found:
            error = ErrorCode.RESOURCE_NOT_FOUND
            message = f"Attempt to describe a user credential that does not exist: {user}"
        results.append({"user": user, "error_code": error, "error_message": message, "credential_infos": found})
    content = {"throttle_time_ms": 0, "error_code": 0, "error_message": "", "results": results}
    return [write_response(DESCRIBE_USER_SCRAM_CREDENTIALS, request.version, content)]


def alter_user_scram_credentials(broker: Broker, request: Request) -> Later:
    """Answer an AlterUserScramCredentials request."""
    asked, version = request.read(), request.version

    def work() -> Parts:
        results = [
            {"user": user, "error_code": error, "error_message": message}
            for user, (error, message) in _alter(broker, asked).items()
        ]
        return [write_response(ALTER_USER_SCRAM_CREDENTIALS, version, {"throttle_time_ms": 0, "results": results})]

    return Later(work)


def _alter(broker: Broker, asked: Struct) -> dict[str, tuple[int, str | None]]:
    valid: dict[str, Struct] = {}
    errors: dict[str, tuple[int, str | None]] = {}
    for each in (*asked.deletions, *asked.upsertions):
        user = each.name
        if user in errors:
            continue
        try:
            if valid.pop(user, None) is not None:
                why = "A user credential cannot be altered twice in the same request"
                raise Refused(ErrorCode.DUPLICATE_RESOURCE, why)
            _check(broker, each)
            valid[user] = each
        except Refused as refused:
            errors[user] = (refused.code, refused.message)
    records: dict[str, MetadataRecord] = {}
    for user, each in valid.items():
        if _is_deletion(each):
            records[user] = RemoveUserScramCredentialRecord(name=user, mechanism=each.mechanism)
        elif each.salted_password:
            records[user] = _credential(each)
        else:  # Java has no such key, and finds that out when everything else has been checked
            errors[user] = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    try:
        broker.change_cluster(list(records.values()))
    except (OctavoError, OSError) as error:
        broker.troubles.failed("credentials could not be changed", error)
        errors |= dict.fromkeys(records, (storage_error(error), reason(error)))
    done: dict[str, tuple[int, str | None]] = dict.fromkeys(records, (0, None))
    return done | errors


def _is_deletion(asked: Struct) -> bool:
    return not hasattr(asked, "salted_password")


def _check(broker: Broker, asked: Struct) -> None:
    """Raise `Refused` if a change is not valid."""
    mechanism = _MECHANISMS.get(asked.mechanism)
    if not asked.name:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism is None:
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if _is_deletion(asked):
        if (asked.name, asked.mechanism) not in broker.image.credentials:
            why = "Attempt to delete a user credential that does not exist"
            raise Refused(ErrorCode.RESOURCE_NOT_FOUND, why)
        return
    if asked.iterations < mechanism.fewest_iterations:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if asked.iterations > _MOST_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _credential(asked: Struct) -> UserScramCredentialRecord:
    """Return what is kept of a password."""
    digest, password = _MECHANISMS[asked.mechanism].hash, bytes(asked.salted_password)
    client_key = hmac.digest(password, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=asked.name,
        mechanism=asked.mechanism,
        salt=bytes(asked.salt),
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(password, b"Server Key", digest),
        iterations=asked.iterations,
    )
