"""A data source for tests: `format("dying")` is `format("octavo")`, but a process dies at a chosen step of a write.

    frame.write.format("dying").options(**death.options).option("topic", ...).mode("append").save(...)

Somebody dies once: whoever creates the file `marker`. If there is such a file already, nobody dies.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal
from unittest import mock

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from octavo.log import StagedWriter
from octavo.log.staging.area import StagingArea
from octavo.spark import OctavoSource
from tests.spark.processes import ancestors, kill
from tests.unit.log.staging.staged import die_before

Who = Literal["worker", "executor", "driver"]

# Above a Python worker there are the daemon that has forked it, and the JVM. That of a driver has a Python above it.
_ABOVE: Final[Mapping[Who, int]] = {"worker": 0, "executor": 2, "driver": 3}
IN_TASKS: Final = ("staging", "staged")
# Before the journal gets the decision, before each partition is appended to, before the journal gets the end.
_IN_COMMIT: Final = ("decision", "append 1", "append 2", "end")
STEPS: Final = (*IN_TASKS, "commit", *_IN_COMMIT, "clearing", "committed")
_PREFIX: Final = "die."


@dataclass(frozen=True)
class Death:
    """Who dies, and when. Commits have two partitions."""

    step: str  # one of STEPS
    who: Who
    marker: str  # a path
    batch: int = 0  # the micro-batch, for what dies in a commit of a stream

    @property
    def options(self) -> dict[str, str]:
        """Options of the data source."""
        return {_PREFIX + name: str(value) for name, value in asdict(self).items()}

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Death | None:
        """What the options say."""
        given: dict[str, Any] = {name.removeprefix(_PREFIX): value for name, value in options.items()}
        return cls(**{**given, "batch": int(given["batch"])}) if given else None

    def strike(self) -> None:
        """Kill whoever is to be killed, the uppermost first, and this process, unless somebody was killed before."""
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return
        above = list(islice(ancestors(os.getpid()), _ABOVE[self.who]))
        kill([*reversed(above), os.getpid()])
        signal.pause()

    def reach(self, step: str) -> None:
        """Die if this is the step."""
        if step == self.step:
            self.strike()

    def lie_in_wait(self) -> None:
        """Have this process die at a step in the middle of what it does next."""
        if Path(self.marker).exists():
            return
        if self.step in _IN_COMMIT:
            die_before(_IN_COMMIT.index(self.step), self.strike)
        elif self.step == "staging":
            add = StagedWriter.add

            def add_and_die(*arguments: Any) -> int:
                position = add(*arguments)
                self.strike()
                return position

            mock.patch.object(StagedWriter, "add", add_and_die).start()
        elif self.step == "clearing":
            # Staged files of the commit are gone by then, but those of attempts that failed are not.
            mock.patch.object(StagingArea, "remove_leftovers", side_effect=lambda *_: self.strike()).start()


class DyingSource(OctavoSource):
    """What Spark calls."""

    def __init__(self, options: Mapping[str, str]) -> None:
        own = {name.lower(): value for name, value in options.items() if name.lower().startswith(_PREFIX)}
        self.death = Death.of(own)
        super().__init__({name: value for name, value in options.items() if name.lower() not in own})

    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        writer = super().writer(schema, overwrite)
        return writer if self.death is None else DyingWriter(writer, self.death)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        writer = super().streamWriter(schema, overwrite)
        return writer if self.death is None else DyingStreamWriter(writer, self.death)


class DyingWriter(DataSourceArrowWriter):
    """Of a batch query."""

    def __init__(self, writer: Any, death: Death) -> None:
        self.writer = writer
        self.death = death

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self.writer, iterator, self.death)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.death.reach("commit")
        self.death.lie_in_wait()
        self.writer.commit(messages)
        self.death.reach("committed")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.abort(messages)


class DyingStreamWriter(DataSourceStreamArrowWriter):
    """Of a stream. In a commit it dies in one micro-batch, and in a task in any."""

    def __init__(self, writer: Any, death: Death) -> None:
        self.writer = writer
        self.death = death

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self.writer, iterator, self.death)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        if batchId == self.death.batch:
            self.death.reach("commit")
            self.death.lie_in_wait()
        self.writer.commit(messages, batchId)
        if batchId == self.death.batch:
            self.death.reach("committed")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.writer.abort(messages, batchId)


def _write(writer: Any, iterator: Iterator[pa.RecordBatch], death: Death) -> WriterCommitMessage:
    if death.step in IN_TASKS:
        death.lie_in_wait()
    message: WriterCommitMessage = writer.write(iterator)
    death.reach("staged")
    return message
