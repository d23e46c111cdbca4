"""`octavo transactions` prints and does what kafka-transactions does, on the same broker of Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from octavo.log.metadata import handover
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.kafka.tools import Tools
from tests.server.commands import Commands
from tests.server.test_transactions_command import HANGING, fill, transactions

QUESTIONS: Final = (
    "list",
    "list --duration-filter 100000000",
    "list --transactional-id-pattern d.*e",
    "describe --transactional-id done",
    "describe --transactional-id open",
    "find-hanging --topic stuck",
    "find-hanging --topic stuck --partition 1",
    "find-hanging --topic orders",
    "find-hanging --broker-id 1",
    "find-hanging --broker-id 1 --max-transaction-timeout 100000000",
)
REFUSED: Final = (
    "describe --transactional-id nobody",
    "find-hanging --partition 1",
    "abort --topic stuck --partition 1",
    "abort --topic stuck --partition 1 --start-offset 2",
)
_PASSING: Final = ("TransactionDurationMs", "Duration(min)")  # what differs a moment later


def table(printed: str) -> list[dict[str, str]]:
    """The rows of a table, in any order, without what passes."""
    head, *lines = (line.split() for line in printed.splitlines())
    rows = [dict(zip(head, [cell.removeprefix("-") for cell in line], strict=False)) for line in lines]
    return sorted(({name: row.get(name, "") for name in head if name not in _PASSING} for row in rows), key=str)


def test_the_same_is_printed_and_done(kafka_broker: Judge, new_broker: NewBroker, tmp_path: Path) -> None:
    """Mend 1.4: open transactions were invisible."""
    directory = tmp_path / "data"
    fill(directory)
    handover([directory])
    kafka = new_broker(directory)
    kafka.start()
    run, tools = Commands(kafka.address, tmp_path), Tools(kafka_broker, kafka.address, tmp_path)
    producer = JavaClients(kafka_broker, kafka).producer(**{"transactional.id": "open"})
    producer.init()
    producer.begin()
    producer.send("orders", 1, [b"of a transaction that is open"])
    for question in QUESTIONS:
        ours, theirs = transactions(run, *question.split()), tools.run(f"transactions {question}")
        assert (ours.code, theirs.exit_code) == (0, 0), question
        assert table(ours.out) == table(theirs.out), question
    for question in REFUSED:
        ours, theirs = transactions(run, *question.split()), tools.run(f"transactions {question}")
        assert (ours.code, theirs.exit_code) == (2, 1), question
    end = "abort --topic stuck --partition 1"
    assert transactions(run, *end.split(), "--start-offset", "0") == (0, "", "")
    assert table(tools.run("transactions find-hanging --topic stuck").out) == []
    again = f"{end} --producer-id {HANGING} --producer-epoch 3 --coordinator-epoch 0"
    assert transactions(run, *again.split()).code == tools.run(f"transactions {again}").exit_code == 0
    producer.close()
