"""`octavo topics`, `produce` and `consume` do with Apache Kafka what they do with Octavo's broker."""

from __future__ import annotations

from pathlib import Path

from tests.kafka.conftest import NewBroker
from tests.server.commands import SCENES, Commands


def test_commands(new_broker: NewBroker, tmp_path: Path) -> None:
    kafka = new_broker(tmp_path / "kafka")
    kafka.format()
    kafka.start()
    for scene in SCENES:
        scene(Commands(kafka.address, tmp_path))
