"""Reads, writes, streams, exports and imports through Spark Connect: by a server in another process, with no JVM here.

python -m tests.spark.programs.connect LOG WORK
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tests.ports import free_port
from tests.spark import sessions
from tests.spark.programs.tables import export_and_import


@contextmanager
def server() -> Iterator[str]:
    """The address of a server, for as long as this lasts."""
    port = free_port()
    settings = {
        **sessions.settings(),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [
        str(sessions.SPARK / "bin" / "spark-class"),
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        "local[2]",
    ]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        while not _listens(port):
            assert process.poll() is None, "the server has ended"
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def main(log: str, work: str) -> None:
    """Prints what it found as JSON, on the last line."""
    os.environ.update(sessions.environment())
    with server() as address:
        spark = SparkSession.builder.remote(address).getOrCreate()
        try:
            found = {**ask(spark, log, work), **write(spark, work), **export_and_import(spark, log, work, 2000)}
            print(json.dumps(found))
        finally:
            spark.stop()  # before the server ends, or else it asks for the server for ten minutes


def ask(spark: SparkSession, log: str, work: str) -> dict[str, object]:
    """A batch query, one that is refused, and a stream."""
    frame = spark.read.format("octavo").load(log)
    refused = ""
    try:
        spark.read.format("octavo").option("subscribe", "nothing").load(log).schema  # noqa: B018 - asks the server
    except Exception as error:
        refused = str(error)
    stream = spark.readStream.format("octavo").option("startingOffsets", "earliest").load(log)
    writer = stream.select("offset").writeStream.format("parquet").option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start(f"{work}/out").awaitTermination()
    return {
        "kind": type(spark).__module__,
        "columns": frame.columns,
        "read": sorted(row.offset for row in frame.select("offset").collect()),
        "streamed": sorted(row.offset for row in spark.read.schema("offset long").parquet(f"{work}/out").collect()),
        "refused": refused,
    }


def write(spark: SparkSession, work: str) -> dict[str, object]:
    """A batch that is written, one that is refused, and a stream of what `ask` has left."""
    target = f"{work}/written"
    frame = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("octavo").option("topic", "numbers").mode("append").save(target)
    refused = ""
    try:
        frame.selectExpr("value AS key").write.format("octavo").option("topic", "t").mode("append").save(target)
    except Exception as error:
        refused = str(error)
    stream = spark.readStream.schema("offset long").parquet(f"{work}/out")
    writer = stream.selectExpr("CAST(offset AS STRING) AS value").writeStream.format("octavo").option("topic", "copy")
    writer = writer.option("checkpointLocation", f"{work}/progress").trigger(availableNow=True)
    writer.start(target).awaitTermination()
    rows = spark.read.format("octavo").load(target).selectExpr("topic", "CAST(value AS STRING) AS value").collect()
    return {
        "write refused": refused,
        **{topic: sorted(int(row.value) for row in rows if row.topic == topic) for topic in ("numbers", "copy")},
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
