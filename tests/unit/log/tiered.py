"""A data directory as Apache Kafka 4.3.1 leaves it with remote storage: the older segments of a topic are not here.

`log-start-offset-checkpoint` names the start of the whole log, which is in the middle of a segment in remote storage,
and the checkpoint of leader epochs goes back to it, as in the directories that a tiered Kafka wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from octavo.log import DataDirectory
from octavo.log.files.text_checkpoint import LOG_START, EpochEntry, write_epochs, write_offsets
from octavo.log.names import LEADER_EPOCHS, TopicPartition
from octavo.log.storage import DISK
from tests.unit.log.logs import SMALL, TIME_MS, make_batch

CUT: Final = TopicPartition("cut", 0)
START: Final = 3  # of the whole log
COUNT: Final = 30
CONFIG: Final = {**SMALL, "remote.storage.enable": "true", "retention.ms": "-1"}


def make_tiered(folder: Path, *, is_told: bool = True) -> int:
    """Make a directory of a tiered topic `cut`, and of another, `plain`. Returns where `cut` begins on the disk.

    is_told: the checkpoint of start offsets names the start
    """
    with DataDirectory.open(folder, clock=lambda: TIME_MS) as data:
        data.create_topic("cut", config=CONFIG)
        data.create_topic("plain", config={"retention.ms": "-1"})
        for number in range(COUNT):
            for topic in ("cut", "plain"):
                data.log(topic, 0).append(make_batch(first=number))
        local = data.log("cut", 0).segments[-2].base_offset
    assert local > START
    for file in (folder / "cut-0").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) < local:
            file.unlink()
    write_epochs(DISK, folder / "cut-0" / LEADER_EPOCHS, [EpochEntry(0, START)])
    write_offsets(DISK, {folder / LOG_START: {CUT: START} if is_told else {}})
    return local
