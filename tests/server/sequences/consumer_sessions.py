"""Sequences over members of the consumer protocol that are not heard of any more."""

from __future__ import annotations

from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.server.sequences.consumer_member import ConsumerMember
from tests.server.sequences.member import SHORT_MS, Admin
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence

_INTERVAL_MS: Final = 100
_GROUP: Final = 32  # a kind of resource
_SET: Final = 0


def have_short_sessions(s: Script) -> None:
    """Give the group settings of its own, and wait until they count."""
    wanted = {"consumer.heartbeat.interval.ms": _INTERVAL_MS, "consumer.session.timeout.ms": SHORT_MS}
    configs = [{"name": name, "config_operation": _SET, "value": str(each)} for name, each in wanted.items()]
    resource = {"resource_type": _GROUP, "resource_name": s.group, "configs": configs}
    client = s.client("setup")
    client.quietly(keys.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": [resource]})

    def is_so(answer: Any) -> bool:
        return bool(answer.heartbeat_interval_ms == _INTERVAL_MS or answer.error_code != ErrorCode.NONE)

    first = ConsumerMember(s, "first")
    client.until(is_so, keys.CONSUMER_GROUP_HEARTBEAT, 1, first.joining())
    first.leave()


@sequence(t=2, restart_at=0)
def the_only_session_of_a_consumer_ends(s: Script) -> None:
    have_short_sessions(s)
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join()
    admin.describe_consumers_until("Empty")
    a.beat()
    admin.commit({0: 1}, member_id=a.id, generation_id_or_member_epoch=a.epoch)
    a.join()


@sequence(t=2, restart_at=0)
def another_consumer_gets_what_a_session_frees(s: Script) -> None:
    have_short_sessions(s)
    a, b, admin = ConsumerMember(s, "a"), ConsumerMember(s, "b"), Admin(s)
    a.join()
    b.join()
    a.beat_until_assigned(2)
    b.beat()
    admin.describe_consumers_until("Empty")


@sequence(t=2, restart_at=0)
def a_static_consumer_that_went_for_a_while_is_missed(s: Script) -> None:
    have_short_sessions(s)
    a, again, admin = ConsumerMember(s, "a", "i"), ConsumerMember(s, "again", "i"), Admin(s)
    a.join()
    a.leave(-2)
    admin.describe_consumers_until("Empty")
    again.join()
    a.beat()
