"""Why a broker is no member of its cluster, in words."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.broker.config import read_settings
from octavo.broker.member.reasons import why_not_registered
from octavo.cluster.life_cycle import LifeCycle
from octavo.cluster.messages import BrokerRegistrationRequest
from octavo.cluster.quorum import Observer
from tests.unit.broker.member.test_config import MEMBER

REGISTRATION = BrokerRegistrationRequest(2, "cluster", UUID(int=70), (), (), None, (UUID(int=71),), -1)


@pytest.mark.parametrize(
    ("leader_id", "sentence"),
    [
        (-1, "no controller answers as the active one; these were asked: a:9093, b:9094, ::1:9095"),
        (1, "the active controller, node 1, does not answer"),
        (2, "node.id cannot be 2: the active controller has it"),
    ],
)
def test_nobody_has_answered_the_registration(leader_id: int, sentence: str) -> None:
    settings = read_settings(MEMBER).member
    assert settings is not None
    observer = Observer(settings.bootstrap)
    observer.leader_id = leader_id
    assert why_not_registered(LifeCycle(REGISTRATION, 0), observer, settings, REGISTRATION.broker_id) == sentence
