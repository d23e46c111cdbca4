"""A folder that is new, and controllers that do not tell which cluster they are."""

from __future__ import annotations

from types import SimpleNamespace, TracebackType
from typing import Any, Self

import pytest

from octavo.broker.member.config import MemberConfig, MemberSettings
from octavo.cluster.messages import Endpoint
from octavo.errors import CannotJoin, ErrorCode
from octavo.server import joining

SETTINGS = MemberSettings(
    MemberConfig(initial_broker_registration_timeout_ms=1), (Endpoint("controller", 9093),), {}, "PLAINTEXT"
)


class OldController:
    """A connection to a controller with a metadata.version below 15, as Apache Kafka's answers then."""

    def __init__(self, host: str, port: int, **options: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def ask(self, api_key: int, content: dict[str, Any]) -> SimpleNamespace:
        """Answer a DescribeCluster."""
        return SimpleNamespace(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message="it is not supported")


def test_controllers_that_do_not_tell_their_cluster_are_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "BrokerConnection", OldController)
    with pytest.raises(CannotJoin, match="does not tell, it is not supported") as raised:
        joining.find_cluster_id(SETTINGS, None)
    assert "`kafka-storage format`" in str(raised.value)
