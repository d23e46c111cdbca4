"""All benchmarks by name. Their modules are imported only when they run, since each imports large libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.measure import Result
from octavo.errors import InvalidInput


class Outcome(NamedTuple):
    """The outcome of a benchmark: its results, and other details for the JSON report."""

    results: list[Result]
    details: dict[str, Any]


class Benchmark(NamedTuple):
    """A benchmark with its description for the command line."""

    about: str
    run: Callable[[int, bool], Outcome]  # takes the number of rounds, and whether to be quick
    only: Callable[[Sequence[str]], Callable[[int, bool], Outcome]] | None = None  # the same for some of its parts


def _records(repeat: int, quick: bool) -> Outcome:
    from benchmarks import jvm, records

    return Outcome(records.run(repeat=repeat, quick=quick), {"kafka": jvm.version()})


def _log(repeat: int, quick: bool) -> Outcome:
    from benchmarks import jvm, log

    return Outcome(log.run(repeat=repeat, quick=quick), {"kafka": jvm.version()})


def _compaction(repeat: int, quick: bool) -> Outcome:
    from benchmarks import compaction, jvm

    return Outcome(compaction.run(repeat=repeat, quick=quick), {"kafka": jvm.version()})


def _spark_read(repeat: int, quick: bool) -> Outcome:
    from benchmarks import spark_read

    return spark_read.run(repeat=repeat, quick=quick)


def _spark_export(repeat: int, quick: bool) -> Outcome:
    from benchmarks import spark_export

    return spark_export.run(repeat=repeat, quick=quick)


def _spark_write(repeat: int, quick: bool) -> Outcome:
    from benchmarks import spark_write

    return spark_write.run(repeat=repeat, quick=quick)


def _inspect(repeat: int, quick: bool) -> Outcome:
    from benchmarks import inspect, jvm

    return Outcome(inspect.run(repeat=repeat, quick=quick), {"kafka": jvm.version()})


def _broker_parts(only: Sequence[str]) -> Callable[[int, bool], Outcome]:
    def run(repeat: int, quick: bool) -> Outcome:
        from benchmarks import broker

        return _parts(broker, only, repeat, quick)

    return run


def _groups_parts(only: Sequence[str]) -> Callable[[int, bool], Outcome]:
    def run(repeat: int, quick: bool) -> Outcome:
        from benchmarks import groups

        return _parts(groups, only, repeat, quick)

    return run


def _cluster_parts(only: Sequence[str]) -> Callable[[int, bool], Outcome]:
    def run(repeat: int, quick: bool) -> Outcome:
        from benchmarks import cluster

        return _parts(cluster, only, repeat, quick)

    return run


def _parts(benchmark: Any, only: Sequence[str], repeat: int, quick: bool) -> Outcome:
    from tests.kafka import releases

    if unknown := set(only) - set(benchmark.PARTS):
        raise InvalidInput(f"there is no part {min(unknown)!r}: there are {', '.join(benchmark.PARTS)}")
    results = benchmark.run(repeat=repeat, quick=quick, only=only)
    return Outcome(results, {"kafka": releases.find("broker").version})


def _codecs(repeat: int, quick: bool) -> Outcome:
    from benchmarks import codecs

    details = codecs.run(repeat=1 if quick else repeat)
    return Outcome(_against_the_first("decompress", details) + _against_the_first("compress", details), details)


def _against_the_first(what: str, details: dict[str, Any]) -> list[Result]:
    """Convert a table of speeds from `codecs` to ratios of the first entry, which is ours, to each other entry."""
    results = []
    for codec, speeds in details[f"{what}_mb_per_s"].items():
        (_, ours), *others = speeds.items()
        results += [
            Result(name=f"{what} {codec} vs {name}", ratio=ours / peer, ours=ours * 1e6, peer=peer * 1e6, unit="B/s")
            for name, peer in others
        ]
    return results


BENCHMARKS: Final = {
    "records": Benchmark("decode, encode and check batches, against kafka-python, aiokafka and Apache Kafka", _records),
    "log": Benchmark("append, recover, read and open logs, against plain writes, reads and checksums", _log),
    "compaction": Benchmark("clean logs, keep producers, send and get records, against Apache Kafka", _compaction),
    "spark_read": Benchmark("Spark reads a log, against ready-made batches and its own Kafka connector", _spark_read),
    "spark_export": Benchmark("logs become tables, against Spark's Kafka connector and pyarrow alone", _spark_export),
    "spark_write": Benchmark("Spark writes a log, against its own Kafka connector and Apache Kafka", _spark_write),
    "inspect": Benchmark("dump and verify files, against reading, checksums and Apache Kafka's own tool", _inspect),
    "broker": Benchmark(
        "produce, fetch and ask a broker, against Apache Kafka's", _broker_parts(()), only=_broker_parts
    ),
    "groups": Benchmark(
        "rebalance groups, commit offsets and transactions, against Apache Kafka", _groups_parts(()), only=_groups_parts
    ),
    "cluster": Benchmark(
        "replicate, fail over and hold memory in a cluster, against Apache Kafka",
        _cluster_parts(()),
        only=_cluster_parts,
    ),
    "codecs": Benchmark("compress and decompress, by every library that could do it", _codecs),
}
