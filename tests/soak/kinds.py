"""The kinds of soak: which tests each has, and what it needs of the time.

Every file with a test that is marked `soak` is in one of them (`test_sharing.py` sees to that). What asks the
package index, or anything else that is none of the kinds here, is a further line.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]


class Kind(NamedTuple):
    """Tests that share a process, and what is slow to start."""

    name: str
    tests: tuple[str, ...]
    least: float  # seconds, with what it starts and its longest test
    weight: float = 1.0
    python: str = "python"  # in which environment, unless it is that of `tests.soak`
    mark: str = "soak"


# One slot for each of two cores: on the first what starts Java, one at a time, and on the second what does not. Those
# whose tests end most punctually are last, so that the soak does.
HEAVY: Final = "heavy"
LIGHT: Final = "light"

_ORDINARY: Final = "not soak and not exhaustive"
_SPARK: Final = ("session", "connector", "streams", "sink", "sink_streams", "sink_kafka")


def _older_sparks() -> list[Kind]:
    """One kind for each version of Spark that `make sparks` tries, in the environment that it makes."""
    found = re.search(r"^SPARKS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    tests = ("tests/unit/spark", *(f"tests/spark/test_{name}.py" for name in _SPARK))
    return [
        Kind(f"spark-{version}", tests, 60, python=f"build/pyspark-{version}/bin/python", mark=_ORDINARY)
        for version in found[1].split()
    ]


KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    HEAVY: (
        Kind("streams", ("tests/kafka/test_streams.py",), 60),
        Kind("spark-deaths", ("tests/spark/test_deaths.py", "tests/spark/test_elsewhere.py"), 90),
        Kind("spark-exports", ("tests/spark/test_export_kills.py",), 60),
        Kind(
            "spark",
            (
                "tests/spark/test_export.py",
                "tests/spark/test_sink_streams.py",
                "tests/spark/test_tables.py",
                "tests/spark/test_values.py",
            ),
            90,
        ),
        *_older_sparks(),
        Kind(
            "cluster",
            (
                "tests/cluster/test_faults.py",
                "tests/cluster/test_nemesis.py",
                "tests/cluster/test_replacement.py",
                "tests/cluster/test_replicas.py",
                "tests/cluster/test_restarts.py",
                "tests/cluster/test_disks.py",
            ),
            120,
            2,
        ),
        Kind("controllers", ("tests/cluster/test_controllers.py", "tests/cluster/test_answers.py"), 90),
        Kind("members", ("tests/kafka/test_controllers.py", "tests/kafka/test_member.py"), 60),
        Kind("clients-member", ("tests/cluster/test_clients.py",), 45),
        Kind("clients-kafka", ("tests/clients",), 45),
        Kind("kills", ("tests/faults",), 90),
        Kind(
            "directories",
            ("tests/kafka/test_repairs.py", "tests/kafka/test_transactions_soak.py", "tests/kafka/test_verify_live.py"),
            60,
        ),
        Kind("model", ("tests/simulation/replication/test_controller.py",), 45),
        Kind("requests", ("tests/kafka/test_generated_answers.py", "tests/kafka/test_sequences.py"), 110),
        Kind("texts", ("tests/kafka/test_kafka_text_soak.py", "tests/kafka/test_internal_records.py"), 30),
    ),
    LIGHT: (
        Kind("constraints", ("tests/packaging/test_constraints.py",), 60, 0.2),
        Kind("histories", ("tests/history",), 45, 0.5),
        Kind("searches", ("tests/soak/test_resync_cost.py",), 75, 0.5),
        Kind("processes", ("tests/crash/test_kill.py", "tests/crash/test_fork.py", "tests/crash/test_lakes.py"), 60),
        Kind("conversations", ("tests/server/test_fuzz.py",), 45),
        Kind("interrupts", ("tests/interrupts",), 60),
        Kind("fuzz", ("tests/soak/test_fuzz.py",), 60, 1.5),
        Kind("damage", ("tests/corruption", "tests/unit/records/compression/test_damage.py"), 60),
        Kind(
            "power-cuts",
            (
                "tests/crash/test_commit_power_cut.py",
                "tests/crash/test_compaction_power_cut.py",
                "tests/crash/test_coordinator_power_cut.py",
                "tests/crash/test_export_power_cut.py",
                "tests/crash/test_followed_metadata_power_cut.py",
                "tests/crash/test_power_cut.py",
                "tests/crash/test_producers_power_cut.py",
            ),
            90,
            1.5,
        ),
        Kind(
            "replication",
            (
                "tests/simulation/replication/test_real_brokers.py",
                "tests/simulation/replication/test_replication.py",
            ),
            60,
            1.5,
        ),
        Kind("simulation", ("tests/simulation/test_simulation.py",), 15),
    ),
}


def named(names: list[str]) -> dict[str, tuple[Kind, ...]]:
    """Return only the kinds with these names. Raises `ValueError` if there is none of a name."""
    unknown = set(names) - {kind.name for kinds in KINDS.values() for kind in kinds}
    if unknown:
        there = ", ".join(kind.name for kinds in KINDS.values() for kind in kinds)
        raise ValueError(f"there is no soak {', '.join(sorted(unknown))}, but {there}")
    return {slot: tuple(kind for kind in kinds if kind.name in names) for slot, kinds in KINDS.items()}


def bin_of(kind: Kind, python: str) -> str:
    """The folder of programs of a kind's environment, as one would type it in the root of the checkout."""
    folder = Path(kind.python if os.sep in kind.python else python).parent
    return str(folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder)
