"""Read a topic in directories with Spark, and print what is there: one line of JSON for each directory.

python -m tests.cluster.reading_with_spark TOPIC FOLDER...
"""

from __future__ import annotations

import json
import sys

from tests.spark import sessions


def main(topic: str, *folders: str) -> None:
    """Print partitions, offsets and values of committed records."""
    spark = sessions.start()
    for folder in folders:
        frame = spark.read.format("octavo").options(**{"subscribe": topic, "isolation.level": "read_committed"})
        rows = frame.load(folder).select("partition", "offset", "value").collect()
        print(json.dumps(sorted((row.partition, row.offset, row.value.decode()) for row in rows)))  # noqa: T201 (its output)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
