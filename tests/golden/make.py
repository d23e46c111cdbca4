"""`make golden`: has Apache Kafka write the golden files again, and say what is in them.

Uncompressed files come out the same each time; compressed ones may change with the JDK and with the libraries
that Kafka compresses with.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.golden import files
from tests.golden.cases import Case, cases
from tests.golden.directories import make_directories
from tests.golden.files import Golden
from tests.golden.replicas import make_replicas
from tests.kafka.broker_directory import make_directory
from tests.kafka.judge import Judge
from tests.server import recording


def make(case: Case, newest: Judge, legacy: Judge) -> Golden:
    """One golden file. Whoever wrote it, the newest Kafka says what is in it."""
    writer = legacy if case.legacy else newest
    data = case.write(writer)
    reading = newest.read(data)
    assert reading.fault is None, f"{case.name}: {reading.fault}"
    return Golden(case.name, case.about, f"Apache Kafka {writer.version}", data, reading.batches)


def main() -> None:
    for old in files.FOLDER.glob("*"):
        old.unlink()
    with Judge("newest") as newest, Judge("legacy") as legacy:
        for case in cases():
            golden = make(case, newest, legacy)
            files.store(golden)
            print(f"{golden.name}.bin: {len(golden.data):,} bytes, {golden.about}")
    with Judge("broker") as judge, tempfile.TemporaryDirectory() as work:
        make_directories(Path(work), judge)
        make_replicas(Path(work), judge)
        make_directory(Path(work), judge)
    recording.store(recording.record())


if __name__ == "__main__":
    main()
