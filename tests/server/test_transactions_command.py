"""`octavo transactions`, on Octavo's own broker and on directories, and what else tells of open transactions."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.cli import main
from octavo.inspect.open_transactions import open_transactions
from octavo.log import DataDirectory, Log, Producer
from octavo.records import BatchBuilder
from octavo.server.serving import serve
from tests.server.commands import Commands, Told

KEPT: Final = {"retention.ms": "-1"}
LONG_AGO_MS: Final = 1_600_000_000_000
HANGING: Final = 4711  # a producer that no coordinator knows


def fill(directory: Path) -> None:
    """A transaction that is complete, one that is open, and one that hangs: its coordinator knows nothing of it."""
    with DataDirectory.open(directory) as data:
        for topic in ("orders", "stuck"):
            data.create_topic(topic, 2, KEPT)
        with Producer(data, {"transactional.id": "done"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"committed", partition=0)
            producer.commit_transaction()
        begin(data.log("stuck", 1), HANGING)


def begin(log: Log, producer_id: int) -> None:
    log.append(data_of_transaction(producer_id, 0))
    plain = BatchBuilder()
    for number in range(3):
        plain.append(None, b"%d" % number, timestamp_ms=LONG_AGO_MS)
    log.append(plain.build())


def data_of_transaction(producer_id: int, sequence: int) -> bytes:
    builder = BatchBuilder(transactional=True, producer_id=producer_id, producer_epoch=3, base_sequence=sequence)
    builder.append(b"key", b"value", timestamp_ms=LONG_AGO_MS)
    return builder.build()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    fill(tmp_path / "data")
    return tmp_path / "data"


def rows(told: Told) -> list[dict[str, Any]]:
    assert told.code == 0, told
    return [json.loads(line) for line in told.out.splitlines()]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


HANGS: Final = {
    "topic": "stuck",
    "partition": 1,
    "producerId": HANGING,
    "producerEpoch": 3,
    "coordinatorEpoch": -1,
    "startOffset": 0,
    "lastTimestamp": LONG_AGO_MS,
}


def transactions(run: Commands, *words: str) -> Told:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["transactions", *words, "-b", run.address])
    return Told(code, out.getvalue(), err.getvalue())


def test_transactions_are_listed_described_found_and_aborted(directory: Path, tmp_path: Path) -> None:
    """Mend 1.4, on a broker."""
    with serve(directory) as server:
        commands = Commands(server.bootstrap_servers, tmp_path)
        (listed,) = rows(transactions(commands, "list", "--json"))
        assert (listed["transactionalId"], listed["coordinator"], listed["transactionState"]) == (
            "done",
            1,
            "CompleteCommit",
        )
        assert rows(transactions(commands, "list", "--json", "--transactional-id-pattern", "x.*")) == []
        (described,) = rows(transactions(commands, "describe", "--transactional-id", "done", "--json"))
        assert described["producerId"] == listed["producerId"]
        assert (described["topicPartitions"], described["transactionTimeoutMs"]) == ([], 60000)
        assert transactions(commands, "describe", "--transactional-id", "nobody").err == (
            "octavo: there is no transactional id nobody\n"
        )
        for words in ([], ["--topic", "stuck"], ["--topic", "stuck", "--partition", "1"], ["--broker-id", "1"]):
            (found,) = rows(transactions(commands, "find-hanging", "--json", *words))
            assert found.pop("durationMinutes") > 1_000_000
            assert found == HANGS
        assert rows(transactions(commands, "find-hanging", "--json", "--topic", "orders")) == []
        assert rows(transactions(commands, "find-hanging", "--json", "--max-transaction-timeout", "100000000")) == []
        consumed = commands("consume", "stuck", "-e", "-p", "1")
        assert consumed.err == (
            "octavo: reached the last stable offset of partition 1 of stuck, 0: a transaction is open, and the "
            "partition ends at 4\n"
        )
        place = ["abort", "--topic", "stuck", "--partition", "1"]
        assert transactions(commands, *place, "--start-offset", "1").err == (
            "octavo: no transaction is open in partition stuck-1 from 1 on\n"
        )
        assert transactions(commands, *place).code == 2
        assert transactions(commands, *place, "--start-offset", "0") == (0, "", "")
        assert rows(transactions(commands, "find-hanging", "--json")) == []
        consumed = commands("consume", "stuck", "-e", "-p", "1")
        assert (consumed.out.split(), consumed.err) == (
            ["0", "1", "2"],
            "octavo: reached the end of partition 1 of stuck, at offset 5\n",
        )


def test_directories_are_read_as_they_are(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mend 1.4, on directories."""
    code, out, err = run(capsys, "transactions", "list", "--directory", str(directory))
    assert (code, err) == (0, "")
    head, line = (each.split() for each in out.splitlines())
    assert head == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert (line[0], line[1], line[3]) == ("done", "None", "CompleteCommit")
    code, out, _ = run(capsys, "transactions", "find-hanging", "--directory", str(directory), "--json")
    found = json.loads(out)
    assert found.pop("durationMinutes") > 1_000_000
    assert (code, found) == (0, HANGS)
    code, out, _ = run(capsys, "transactions", "find-hanging", "--directory", str(directory), "--topic", "orders")
    assert (code, out.split()[0], len(out.splitlines())) == (0, "Topic", 1)


def test_verify_and_report_say_that_readers_stop(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mend 1.4: neither said a word of an open transaction."""
    code, out, err = run(capsys, "verify", str(directory))
    note = (
        f"{directory / 'stuck-1'}: a transaction of producer {HANGING} is open since offset 0: readers of committed "
        "data stop there, and the log ends at 4"
    )
    assert (code, out) == (0, "")
    assert err.splitlines()[1] == f"octavo: {note}"
    page = tmp_path / "page.html"
    assert run(capsys, "report", str(directory), "--html", str(page))[0] == 0
    assert note in page.read_text()


@pytest.mark.parametrize("closed", [True, False])
def test_open_transactions_are_read_without_changing_anything(closed: bool, tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("orders", 1, KEPT)
        log = data.log("orders", 0)
        for number in range(3):
            log.append(data_of_transaction(10 + number, 0))
            log.roll()
        if closed:
            folder = log.folder
        else:
            folder = tmp_path / "copy" / "orders-0"
            copied(log.folder, folder)
    for name in folder.glob("*1.snapshot"):
        name.write_bytes(b"damaged")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = open_transactions(folder)
    assert [(each.producer_id, each.start_offset, each.end_offset) for each in found] == [
        (10, 0, 3),
        (11, 1, 3),
        (12, 2, 3),
    ]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def copied(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
