"""Spark sessions for tests, small ones; and the jars of Spark's Kafka connector, which `make kafka` fetches."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import DataFrame, Row, SparkSession

from tests.kafka.releases import KafkaUnavailable, java, unfetched

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
BUILD: Final = ROOT / "build" / "spark"
SPARK: Final = Path(pyspark.__file__).resolve().parent

JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"  # quick to start beats quick in the end
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "768m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": str(BUILD / "warehouse"),
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
}


def environment() -> dict[str, str]:
    """For processes that start a Spark: workers run on this Python, and find what this one finds."""
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT),
        "TZ": "UTC",
    }


def settings(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a small session."""
    return {**_SETTINGS, **(more or {})}


def start(master: str = "local[2]", more: Mapping[str, str] | None = None) -> SparkSession:
    """A session in this process."""
    os.environ.update(environment())
    builder = SparkSession.builder.master(master).appName("tests")
    for name, value in settings(more).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def collect(frame: DataFrame) -> list[Row]:
    """All rows, with bytes where Spark before 4.1 has a `bytearray`, which sets and dictionaries do not take."""
    return [Row(**{name: _hashable(value) for name, value in row.asDict().items()}) for row in frame.collect()]


def _hashable(value: object) -> object:
    if isinstance(value, list):  # of headers
        return [Row(key=header.key, value=_hashable(header.value)) for header in value]
    return bytes(value) if isinstance(value, bytearray) else value


def connector_path() -> str:
    """The class path of Spark's Kafka connector: the newest that is not newer than Spark. Raises `KafkaUnavailable`."""
    fetched = {version_of(jar.parent.name): jar.parent for jar in BUILD.glob("*/spark-sql-kafka-*.jar")}
    fitting = [version for version in fetched if version[:2] <= version_of(pyspark.__version__)[:2]]
    if not fitting:
        raise KafkaUnavailable(
            unfetched(
                f"Spark's Kafka connector for Spark {pyspark.__version__} is not in build/spark: run `make kafka` to "
                "fetch the newest, or `make sparks` for those of older versions."
            )
        )
    jars = sorted(fetched[max(fitting)].glob("*.jar"))
    return ":".join(map(str, (*jars, _stand_ins())))


def version_of(text: str) -> tuple[int, ...]:
    """The numbers of a version, which compare as it does."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _stand_ins() -> Path:
    """The compiled classes of java/; their folder's name holds a hash of them."""
    java()  # says what is missing
    sources = sorted((HERE / "java").glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    target = BUILD / f"stand-ins-{digest}"
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test workers start at once
        if not target.exists():
            jars = [*(SPARK / "jars").glob("scala-library-*.jar"), *(SPARK / "jars").glob("spark-core_*.jar")]
            unfinished = target.with_suffix(".part")
            command = ["javac", "--release", "17", "-proc:none", "-d", str(unfinished)]
            done = subprocess.run(
                [*command, "-cp", ":".join(map(str, jars)), *map(str, sources)], capture_output=True, text=True
            )
            if done.returncode:
                raise RuntimeError(f"the stand-ins do not compile:\n{done.stderr}")
            unfinished.rename(target)
    return target
