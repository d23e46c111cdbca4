"""Run a function on Spark's workers for each of some arguments, and return what it returned: `run_on_workers`.

The arguments and results are small, and are pickled. An error of Octavo comes back as itself: it would only be raised
again if Spark repeated the task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from octavo.errors import OctavoError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_SCHEMA: Final = "number long, result binary"


def is_remote(spark: Any) -> bool:
    """Whether the session is one of Spark Connect, which has no SparkContext."""
    return not hasattr(type(spark), "_jsparkSession") and type(spark).__module__.startswith("pyspark.sql.connect")


def run_on_workers(
    spark: SparkSession, function: Callable[[Argument], Result], arguments: Sequence[Argument]
) -> list[Result]:
    """Return the results in the order of the arguments. Each is a task of its own. Raises what the function raises."""
    if not arguments:
        return []
    pickled = [pickle.dumps(argument) for argument in arguments]
    worker = _Worker(function, pickled)
    if is_remote(spark):
        frame = spark.range(0, len(pickled), 1, len(pickled)).mapInArrow(worker, _SCHEMA)
        results: dict[int, Any] = {row.number: pickle.loads(bytes(row.result)) for row in frame.collect()}
    else:  # by RDD, because `mapInArrow` asks for pandas
        numbers = spark.sparkContext.parallelize(range(len(pickled)), len(pickled))
        results = dict(enumerate(map(pickle.loads, numbers.map(worker.run).collect())))
    for result in results.values():
        if isinstance(result, OctavoError):
            raise result
    return [results[number] for number in range(len(pickled))]


class _Worker:
    """What runs on a worker."""

    def __init__(self, function: Callable[[Any], Any], arguments: Sequence[bytes]) -> None:
        self._function: Final = function
        self._arguments: Final = arguments

    def run(self, number: int) -> bytes:
        """Call the function with an argument; return the result, or the error, pickled."""
        try:
            return pickle.dumps(self._function(pickle.loads(self._arguments[number])))
        except OctavoError as error:
            return pickle.dumps(error)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield pa.RecordBatch.from_pydict({"number": [number], "result": [self.run(number)]})
