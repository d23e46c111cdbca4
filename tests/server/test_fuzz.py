"""Recorded conversations, changed in every way, are sent to a broker: it serves the others, and nothing grows."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import pytest

from octavo.cli import main
from octavo.log import DataDirectory
from tests.server.child import PATIENCE_S, ChildBroker
from tests.server.fuzzing import Attacker, Attacks, made_by_hand
from tests.server.neighbour import Neighbour
from tests.server.recording import load
from tests.soak.plugin import Soak

SECONDS: Final = 5
_ATTACKS_PER_SWEEP: Final = 100
_WARM: Final = 0.4  # of the time: then everything has been used that is loaded late
_MORE_MEMORY: Final = 32 << 20
# An attack may ask for ten thousand partitions, and another for as many while the first ones are being deleted.
_MEMORY_OF_A_PARTITION: Final = 2 * 12 << 10
_MORE_DESCRIPTORS: Final = 12
_LOOK_AGAIN_S: Final = 0.1
_SETTINGS: Final = {"log.segment.delete.delay.ms": "0", "log.retention.ms": "-1"}


def fuzz(folder: Path, seconds: float, seed: int) -> int:
    """Attack a broker for so long, and return how many attacks that were."""
    sys.stdout.write(f"seed {seed}\n")
    attacks = Attacks([*load(), *[made_by_hand()] * 5], seed)
    with ChildBroker(folder, _SETTINGS) as broker:
        neighbour = Neighbour(broker)
        try:
            number = _attack(broker, neighbour, attacks, 0, seconds * _WARM)
            memory, descriptors = broker.memory, broker.descriptors
            number = _attack(broker, neighbour, attacks, number, seconds * (1 - _WARM))
            more_memory, more_descriptors = broker.memory - memory, _left_open(broker, descriptors)
        finally:
            neighbour.stop()
        sys.stdout.write(
            f"{number} attacks; {len(neighbour.acknowledged)} records beside them, longest wait"
            f" {neighbour.longest_s:.3f} s; memory {more_memory >> 10:+} KiB, descriptors {more_descriptors:+},"
            f" at most {neighbour.most_partitions} partitions at once\n"
        )
        assert broker.stop() == 0, broker.said
        assert "Traceback" not in broker.said
        assert " failed: " not in broker.said, broker.said
        assert "was closed: " in broker.said  # it says what happened
    assert more_memory < _MORE_MEMORY + neighbour.most_partitions * _MEMORY_OF_A_PARTITION
    assert more_descriptors < _MORE_DESCRIPTORS
    assert main(["verify", str(broker.data)]) == 0
    with DataDirectory.open(broker.data) as data:
        assert neighbour.lost(data) == []
    return number


def _attack(broker: ChildBroker, neighbour: Neighbour, attacks: Attacks, number: int, seconds: float) -> int:
    attacker = Attacker(broker.address)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        attacker.carry_out(attacks.make(number))
        number += 1
        assert broker.process.poll() is None, f"attack {number}: {broker.said}"
        assert neighbour.is_well, f"attack {number}: {broker.said}"
        if number % _ATTACKS_PER_SWEEP == 0:
            neighbour.sweep()
    attacker.close()
    neighbour.sweep()
    return number


def _left_open(broker: ChildBroker, before: int) -> int:
    """Return how many more descriptors it has than before, when it has closed what was left and deleted."""
    deadline = time.monotonic() + PATIENCE_S
    while broker.descriptors - before >= _MORE_DESCRIPTORS and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)
    return broker.descriptors - before


def test_changed_conversations_hurt_nobody(tmp_path: Path) -> None:
    fuzz(tmp_path, SECONDS, time.time_ns() // 1_000_000)


@pytest.mark.soak
def test_changed_conversations_hurt_nobody_for_long(tmp_path: Path, soak: Soak) -> None:
    soak.cases = fuzz(tmp_path, soak.whole(), soak.seed)


if __name__ == "__main__":
    fuzz(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
