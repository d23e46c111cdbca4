"""One Spark session, and one broker with its topics, for all tests that a process runs.

Without the connector or Kafka such tests are skipped with the reason; where `CI` is set they fail.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.kafka.conftest import new_broker
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.spark import sessions
from tests.spark.broker import Topics, fill, started
from tests.spark.exports import ExportedTables

__all__ = ["exported", "new_broker", "spark", "topics"]


@pytest.fixture(scope="session")
def spark(java: str) -> Iterator[SparkSession]:
    """A session with Spark's Kafka connector on its class path, if that is to be had."""
    try:
        path = sessions.connector_path()
    except KafkaUnavailable:
        path = ""
    session = sessions.start(more={"spark.driver.extraClassPath": path} if path else None)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def topics(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    """Topics of every kind in a running broker, whose checkpoint has caught up."""
    try:
        sessions.connector_path()
        with started(tmp_path_factory.mktemp("broker") / "data") as broker:
            topics = fill(broker)
            yield topics
            topics.close()
    except KafkaUnavailable as reason:
        do_without(reason)


@pytest.fixture(scope="session")
def exported(spark: SparkSession, topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> ExportedTables:
    """What is committed in these topics, as tables."""
    return ExportedTables(spark, topics, tmp_path_factory.mktemp("exported"))
