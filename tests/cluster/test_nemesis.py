"""Several things go wrong at a time, again and again, for as long as the soak lasts, and clients lose nothing.

`--log-level=INFO` shows what happens, and `--soak-seed` has it happen in the order of an earlier run.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.cluster.conftest import OTHERS, small_disk
from tests.cluster.nemesis import Nemesis
from tests.cluster.network import Network
from tests.cluster.nodes import Cluster, Kind
from tests.cluster.scenarios import under_load
from tests.kafka.judge import Judge
from tests.soak.plugin import Soak

STEPS: Final = 8  # until everything is healed and checked
# A busy machine must not be a fault: nodes that are well would be fenced again and again, or give up.
PATIENT: Final = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "1500",
    "initial.broker.registration.timeout.ms": "600000",
    "controller.quorum.election.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "6000",
}
_log: Final = logging.getLogger(__name__)
KINDS: Final[dict[int, Kind]] = {1: "kafka", 2: OTHERS, 3: OTHERS, 4: "kafka"}


@pytest.mark.soak(75)
def test_nothing_is_lost_in_faults_that_overlap(
    java: str, other_network: Network, tmp_path: Path, clients_of_java: Judge, soak: Soak
) -> None:
    random = Random(soak.seed)
    made = Cluster(tmp_path, other_network, KINDS, controllers=3, settings=PATIENT)
    with small_disk(made.brokers[2].data), made as cluster:
        for _ in soak.rounds():
            story: list[str] = []
            try:
                with under_load(cluster, clients_of_java, seed=random.randrange(1 << 30), transactions=True) as load:
                    nemesis = Nemesis(cluster, load.topics, Random(random.randrange(1 << 30)))
                    story = nemesis.story
                    nemesis.run(STEPS)
            except Exception as failure:
                raise AssertionError(f"seed {soak.seed}, after {story}") from failure
            _log.info("seed %d: %d operations are right after %s", soak.seed, len(load.history), ", ".join(story))
