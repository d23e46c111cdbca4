"""`octavo transactions`: list and describe transactions, find and abort those that hang, as kafka-transactions does."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.cli.broker_options import add_broker_options, given_cluster
from octavo.cli.exits import FINE
from octavo.cli.tables import Column, Row, print_json, print_table
from octavo.errors import InvalidInput, RequestFailed

if TYPE_CHECKING:
    from octavo.client.transactions import Transactions
    from octavo.inspect.transactional_ids import TransactionalId
    from octavo.log.names import TopicPartition

_DESCRIPTION: Final = """\
Tells of transactions, through any broker of the cluster, Octavo's or Apache Kafka's. The commands and their options are
those of Kafka's kafka-transactions, and so are the columns; --json prints a JSON object a line instead. `list` and
`find-hanging` take --directory, too, and read the files of a data directory, which may be in use.

A transaction hangs if it is open in a partition and no coordinator will end it. Readers of committed data stop there
for ever; `abort` ends it.
"""

_EPILOG: Final = """\
examples:
  octavo transactions list
  octavo transactions describe --transactional-id billing
  octavo transactions find-hanging --topic orders
  octavo transactions abort --topic orders --partition 3 --start-offset 1042
  octavo transactions find-hanging --directory /var/lib/kafka/data --json

Exit codes: 0 done, 2 could not: the broker does not answer or refuses, or files cannot be read.
"""

_MINUTE_MS: Final = 60_000
_LISTED: Final = (
    Column("TransactionalId", "transactionalId"),
    Column("Coordinator", "coordinator", 11),
    Column("ProducerId", "producerId", 10),
    Column("TransactionState", "transactionState", 16),
)
_DESCRIBED: Final = (
    Column("CoordinatorId", "coordinatorId", 13),
    Column("TransactionalId", "transactionalId"),
    Column("ProducerId", "producerId", 10),
    Column("ProducerEpoch", "producerEpoch", 13),
    Column("TransactionState", "transactionState", 16),
    Column("TransactionTimeoutMs", "transactionTimeoutMs", 20),
    Column("CurrentTransactionStartTimeMs", "currentTransactionStartTimeMs", 29),
    Column("TransactionDurationMs", "transactionDurationMs", 21),
    Column("TopicPartitions", "topicPartitions"),
)
_HANGING: Final = (
    Column("Topic", "topic", 5),
    Column("Partition", "partition", 9),
    Column("ProducerId", "producerId", 10),
    Column("ProducerEpoch", "producerEpoch", 13),
    Column("CoordinatorEpoch", "coordinatorEpoch", 16),
    Column("StartOffset", "startOffset", 11),
    Column("LastTimestamp", "lastTimestamp", 13),
    Column("Duration(min)", "durationMinutes", 13),
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo transactions` and its commands to the parser."""
    parser = commands.add_parser(
        "transactions",
        help="list transactions, and find and abort those that hang",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_list(actions.add_parser("list", help="list transactional ids"))
    _add_describe(actions.add_parser("describe", help="describe a transactional id"))
    _add_find_hanging(actions.add_parser("find-hanging", help="find transactions that nobody will end"))
    _add_abort(actions.add_parser("abort", help="abort a transaction that hangs"))


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--duration-filter", metavar="MS", type=int, default=-1, help="only transactions that are open for longer"
    )
    parser.add_argument(
        "--transactional-id-pattern", metavar="REGEX", help="only transactional ids that match this regular expression"
    )
    _add_shared(parser, of_directories=True)
    parser.set_defaults(run=_list)


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactional-id", metavar="ID", required=True, help="the transactional id")
    _add_shared(parser)
    parser.set_defaults(run=_describe)


def _add_find_hanging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker-id", metavar="N", type=int, help="only partitions with a replica on this broker")
    parser.add_argument(
        "--max-transaction-timeout",
        metavar="MINUTES",
        type=int,
        default=15,
        help="only transactions that are open for longer (default: 15, the longest that brokers allow by default)",
    )
    parser.add_argument("--topic", metavar="TOPIC", help="only partitions of this topic")
    parser.add_argument("--partition", metavar="N", type=int, help="only this partition of --topic")
    _add_shared(parser, of_directories=True)
    parser.set_defaults(run=_find_hanging)


def _add_abort(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="TOPIC", required=True, help="the topic")
    parser.add_argument("--partition", metavar="N", type=int, required=True, help="the partition")
    parser.add_argument("--start-offset", metavar="OFFSET", type=int, help="where the transaction begins")
    older = parser.add_argument_group("brokers before 3.0", "which need all of these instead of --start-offset")
    older.add_argument("--producer-id", metavar="ID", type=int)
    older.add_argument("--producer-epoch", metavar="EPOCH", type=int)
    older.add_argument("--coordinator-epoch", metavar="EPOCH", type=int)
    _add_shared(parser, prints=False)
    parser.set_defaults(run=_abort)


def _add_shared(parser: argparse.ArgumentParser, *, of_directories: bool = False, prints: bool = True) -> None:
    if of_directories:
        parser.add_argument(
            "--directory",
            metavar="DIR",
            action="append",
            type=Path,
            help="read a data directory instead of asking a broker; may be repeated for one with several folders",
        )
    if prints:
        parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    add_broker_options(parser)


def _list(arguments: argparse.Namespace) -> int:
    if arguments.directory:
        rows = list(_ids_of_directory(arguments))
    else:
        from octavo.client.transactions import Transactions

        with given_cluster(arguments) as cluster:
            found = Transactions(cluster).list(
                duration_ms=max(arguments.duration_filter, -1), pattern=arguments.transactional_id_pattern
            )
        rows = [_listed(each.id, each.coordinator, each.producer_id, each.state) for each in found]
    _print(_LISTED, rows, arguments)
    return FINE


def _listed(transactional_id: str, coordinator: int | None, producer_id: int, state: str) -> Row:
    return {
        "transactionalId": transactional_id,
        "coordinator": coordinator,
        "producerId": producer_id,
        "transactionState": state,
    }


def _ids_of_directory(arguments: argparse.Namespace) -> Iterator[Row]:
    from octavo.coordinator.groups.consumer.regex import matching, regex_problem
    from octavo.inspect.transactional_ids import state_of, transactional_ids

    found = transactional_ids(arguments.directory)
    pattern: str | None = arguments.transactional_id_pattern
    if pattern is not None:
        problem = regex_problem(pattern)
        if problem is not None:
            raise InvalidInput(f"the regular expression `{pattern}` is invalid: {problem}")
        wanted = matching(pattern, {each.id: each for each in found})
        found = [each for each in found if each.id in wanted]
    for each in found:
        open_ms = _now_ms() - each.value.transaction_start_timestamp_ms
        if arguments.duration_filter < 0 or open_ms > arguments.duration_filter:
            yield _listed(each.id, None, each.value.producer_id, state_of(each))


def _describe(arguments: argparse.Namespace) -> int:
    from octavo.client.transactions import Transactions

    with given_cluster(arguments) as cluster:
        told = Transactions(cluster).describe(arguments.transactional_id)
    is_open = told.start_ms >= 0
    row = {
        "coordinatorId": told.coordinator,
        "transactionalId": told.id,
        "producerId": told.producer_id,
        "producerEpoch": told.producer_epoch,
        "transactionState": told.state,
        "transactionTimeoutMs": told.timeout_ms,
        "currentTransactionStartTimeMs": told.start_ms if is_open else None,
        "transactionDurationMs": _now_ms() - told.start_ms if is_open else None,
        "topicPartitions": [str(each) for each in told.partitions],
    }
    _print(_DESCRIBED, [row], arguments)
    return FINE


class _Candidate(NamedTuple):
    """An open transaction in a partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


def _find_hanging(arguments: argparse.Namespace) -> int:
    if arguments.partition is not None and arguments.topic is None:
        raise InvalidInput("--partition needs --topic")
    if arguments.directory and arguments.broker_id is not None:
        raise InvalidInput("--broker-id is for clusters, and does not go with --directory")
    if arguments.directory:
        hanging = _hanging_of_directory(arguments)
    else:
        from octavo.client.transactions import Transactions

        with given_cluster(arguments) as cluster:
            hanging = _hanging_of_cluster(Transactions(cluster), arguments)
    _print(_HANGING, [_hanging_row(each) for each in hanging], arguments)
    return FINE


def _hanging_of_cluster(transactions: Transactions, arguments: argparse.Namespace) -> list[_Candidate]:
    from octavo.log.names import TopicPartition

    topic, number, broker = arguments.topic, arguments.partition, arguments.broker_id
    partitions = [TopicPartition(topic, number)] if number is not None else transactions.partitions(topic, broker)
    candidates = _long_open(
        [
            _Candidate(
                each.partition, each.id, each.epoch, each.coordinator_epoch, each.start_offset, each.last_timestamp_ms
            )
            for each in transactions.producers(partitions, broker)
            if each.start_offset >= 0
        ],
        arguments,
    )
    if not candidates:
        return []
    awaited: dict[int, set[TopicPartition]] = {}
    for listed in transactions.list(producer_ids={each.producer_id for each in candidates}):
        try:
            awaited[listed.producer_id] = set(transactions.describe(listed.id).partitions)
        except RequestFailed as error:
            if not _is_gone(error):
                raise
    return _unawaited(candidates, awaited)


def _is_gone(error: RequestFailed) -> bool:
    from octavo.errors import ErrorCode

    return error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def _hanging_of_directory(arguments: argparse.Namespace) -> list[_Candidate]:
    from octavo.inspect.transactional_ids import all_open_transactions, transactional_ids

    found = all_open_transactions(arguments.directory, arguments.topic, arguments.partition)
    candidates = _long_open([_Candidate(*each[:6]) for each in found], arguments)
    ids: Sequence[TransactionalId] = transactional_ids(arguments.directory) if candidates else []
    return _unawaited(candidates, {each.value.producer_id: each.partitions for each in ids})


def _long_open(candidates: Iterable[_Candidate], arguments: argparse.Namespace) -> list[_Candidate]:
    """Return the transactions that their coordinators should have ended by now."""
    latest_ms = _now_ms() - arguments.max_transaction_timeout * _MINUTE_MS
    return [each for each in candidates if each.last_timestamp_ms < latest_ms]


def _unawaited(candidates: list[_Candidate], awaited: Mapping[int, set[TopicPartition]]) -> list[_Candidate]:
    """Return the transactions whose partition is not among those in which a coordinator has one to end."""
    return [each for each in candidates if each.partition not in awaited.get(each.producer_id, set())]


def _hanging_row(each: _Candidate) -> Row:
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "producerId": each.producer_id,
        "producerEpoch": each.producer_epoch,
        "coordinatorEpoch": each.coordinator_epoch,
        "startOffset": each.start_offset,
        "lastTimestamp": each.last_timestamp_ms,
        "durationMinutes": (_now_ms() - each.last_timestamp_ms) // _MINUTE_MS,
    }


def _abort(arguments: argparse.Namespace) -> int:
    from octavo.client.transactions import Transactions
    from octavo.log.names import TopicPartition

    partition = TopicPartition(arguments.topic, arguments.partition)
    given = (arguments.producer_id, arguments.producer_epoch, arguments.coordinator_epoch)
    if arguments.start_offset is None and None in given:
        raise InvalidInput(
            "the transaction is named by --start-offset, or for brokers before 3.0 by --producer-id, --producer-epoch "
            "and --coordinator-epoch"
        )
    with given_cluster(arguments) as cluster:
        transactions = Transactions(cluster)
        if arguments.start_offset is None:
            producer_id, epoch, coordinator_epoch = given
        else:
            found = transactions.producers([partition])
            begun = [each for each in found if each.start_offset == arguments.start_offset >= 0]
            if not begun:
                raise InvalidInput(f"no transaction is open in partition {partition} from {arguments.start_offset} on")
            producer_id, epoch, coordinator_epoch = begun[0].id, begun[0].epoch, begun[0].coordinator_epoch
        # No coordinator has an epoch below 0, so that 0 is older than any that may still write a marker.
        transactions.abort(partition, producer_id, epoch, max(coordinator_epoch, 0))
    return FINE


def _print(columns: Sequence[Column], rows: Sequence[Row], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json(rows)
    else:
        print_table(columns, [{name: _text(value) for name, value in row.items()} for row in rows])


def _text(value: object) -> object:
    if isinstance(value, list):
        return ",".join(value)
    return "None" if value is None else value


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
