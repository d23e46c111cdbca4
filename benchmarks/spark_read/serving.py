"""Start an Apache Kafka broker on a log that it did not write."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.data import FOLDER
from benchmarks.measure import tell
from benchmarks.spark_read import logs
from tests.kafka.broker import Broker
from tests.kafka.releases import KafkaUnavailable
from tests.spark import sessions
from tests.spark.broker import create


@contextmanager
def served_to_connector(folder: Path) -> Iterator[str | None]:
    """Run a broker that serves the log to Spark's connector; yield its address, or None if one of them is missing."""
    try:
        sessions.connector_path()
        with served(folder) as address:
            yield address
    except KafkaUnavailable as missing:
        tell(str(missing))
        yield None


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run a broker that serves the log in `folder`; yield its address. Raises `KafkaUnavailable`."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as work:
        data = Path(work, "data")
        with Broker(data) as broker:
            broker.format()
            broker.start()
            create(broker, logs.TOPIC, 1, retention_ms="-1", segment_bytes=str(2**31 - 1))
            broker.stop()
            partition = data / f"{logs.TOPIC}-0"
            for path in partition.glob("0*"):
                path.unlink()
            for path in (folder / partition.name).glob("0*"):
                if path.suffix == ".log":
                    os.link(path, partition / path.name)
                else:  # the broker makes index files longer while it runs
                    shutil.copy(path, partition / path.name)
            broker.start()
            yield broker.address
