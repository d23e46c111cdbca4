"""`octavo dump` of any file, folder and directory, in every form."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.records import BatchBuilder, Codec, Header
from tests.golden import files
from tests.permissions import run_obeying_permissions
from tests.unit.cli.test_command import OCTAVO

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
NAME = "00000000000000000000"


def batch(base_offset: int, values: Sequence[bytes | None], *, codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, codec=codec)
    for number, value in enumerate(values):
        headers = [Header("trace", b"\x1b[31m"), Header("empty", None)] if number == 0 else []
        builder.append(b"key-%d" % number, value, timestamp_ms=1_700_000_000_000 + number, headers=headers)
    return builder.build()


SECOND = len(batch(0, [b"one", b"two", None]))  # where the second batch of the directory below begins


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with a file of every kind."""
    folder = tmp_path / "orders-3"
    folder.mkdir()
    first = batch(0, [b"one", b"two", None])
    contents: dict[Path, bytes] = {
        folder / f"{NAME}.log": first + batch(3, [b"three" * 99], codec=Codec.LZ4),
        folder / f"{NAME}.index": struct.pack(">ii", 3, len(first)) + bytes(8 * 20),
        folder / f"{NAME}.timeindex": struct.pack(">qi", 1_700_000_000_002, 2) + bytes(12 * 20),
        folder / f"{NAME}.txnindex": struct.pack(">hqqqq", 0, 7, 0, 2, 3),
        folder / "leader-epoch-checkpoint": b"0\n1\n5 0\n",
        folder / "partition.metadata": b"version: 0\ntopic_id: 4Qz2wmGmQ9y8lSzYwPG6Lw",
        folder / "notes.txt": b"not Kafka's",
        tmp_path / "meta.properties": b"#\n#date\nnode.id=1\nversion=1\ncluster.id=abc\n",
        tmp_path / "recovery-point-offset-checkpoint": b"0\n1\norders 3 4\n",
        tmp_path / ".lock": b"",
        tmp_path / ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":7}',
    }
    for path, content in contents.items():
        path.write_bytes(content)
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "remote-log-index-cache" / f"{NAME}.index").write_bytes(bytes(8))
    return tmp_path


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_directory_is_dumped_as_lines_of_json(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(directory), "--format", "jsonl", "--entries"]) == FINE
    out, err = capsys.readouterr()
    assert err == ""
    found = objects(out)
    names = [str(Path(each["file"]).relative_to(directory)) for each in found]
    assert list(dict.fromkeys(names)) == [
        ".kafka_cleanshutdown",
        "meta.properties",
        f"orders-3/{NAME}.index",
        f"orders-3/{NAME}.log",
        f"orders-3/{NAME}.timeindex",
        f"orders-3/{NAME}.txnindex",
        "orders-3/leader-epoch-checkpoint",
        "orders-3/partition.metadata",
        "recovery-point-offset-checkpoint",
    ]
    for each in found:
        del each["file"]
    place = {"topic": "orders", "partition": 3}
    nowhere = {"topic": None, "partition": None}
    entries = [each for each in found if "kind" in each]
    assert entries == [
        {"kind": "clean-shutdown", **nowhere, "name": "version", "value": "0"},
        {"kind": "clean-shutdown", **nowhere, "name": "brokerEpoch", "value": "7"},
        {"kind": "meta-properties", **nowhere, "name": "node.id", "value": "1"},
        {"kind": "meta-properties", **nowhere, "name": "version", "value": "1"},
        {"kind": "meta-properties", **nowhere, "name": "cluster.id", "value": "abc"},
        {"kind": "offset-index", **place, "offset": 3, "relativeOffset": 3, "position": SECOND},
        {"kind": "time-index", **place, "timestamp": 1_700_000_000_002, "offset": 2, "relativeOffset": 2},
        {
            "kind": "transaction-index",
            **place,
            "version": 0,
            "producerId": 7,
            "firstOffset": 0,
            "lastOffset": 2,
            "lastStableOffset": 3,
        },
        {"kind": "leader-epoch-checkpoint", **place, "epoch": 5, "startOffset": 0},
        {"kind": "partition-metadata", **place, "name": "version", "value": "0"},
        {"kind": "partition-metadata", **place, "name": "topic_id", "value": "4Qz2wmGmQ9y8lSzYwPG6Lw"},
        {"kind": "offset-checkpoint", **place, "offset": 4},
    ]
    assert [each["value"] for each in found if "kind" not in each] == ["one", "two", None, "three" * 99]


def test_in_a_pipe_files_that_kafkas_tool_knows_have_its_text_and_others_are_json(
    directory: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["dump", str(directory / "orders-3")]) == FINE
    lines = capfdbinary.readouterr().out.decode().splitlines()
    log = directory / "orders-3" / f"{NAME}.log"
    assert lines[lines.index(f"Dumping {log}") + 1] == "Log starting offset: 0"
    assert [line for line in lines if line.startswith("{")] == lines[-3:]
    assert json.loads(lines[-1])["name"] == "topic_id"


@pytest.mark.parametrize("form", [[], ["--format", "kafka"]])
def test_a_sound_directory_is_kafkas_text_without_a_complaint(
    form: list[str], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = tmp_path / "new-0"  # as a running broker has it: nothing is written yet, or nothing is indexed
    folder.mkdir()
    for name, content in ((NAME, batch(0, [b"one", b"two"])), (f"{2:020}", b"")):
        (folder / f"{name}.log").write_bytes(content)
        (folder / f"{name}.index").write_bytes(bytes(800))
        (folder / f"{name}.timeindex").write_bytes(bytes(1200))
    assert main(["dump", str(tmp_path), *form]) == FINE
    out, err = capfdbinary.readouterr()
    assert err == b""
    assert [line for line in out.decode().splitlines() if line.startswith("Dumping")] == [
        f"Dumping {folder / NAME}.log",
        f"Dumping {folder / f'{2:020}'}.log",
    ]


def test_one_file_that_kafkas_tool_fails_at_does_not_hide_the_others(
    directory: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    index = directory / "orders-3" / f"{NAME}.index"
    index.write_bytes(struct.pack(">ii", 3, 1 << 20))
    assert main(["dump", str(directory), "--format", "kafka"]) == DAMAGE_FOUND
    out = capfdbinary.readouterr().out.decode()
    assert out.index(f"Dumping {index}\n") < out.index("Log starting offset: 0\n")


def test_options_that_kafkas_text_has_no_place_for_make_it_json(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(directory / "orders-3" / f"{NAME}.log")
    for options in (["--binary", "hex"], ["--offsets", "1:"], ["--key", "key-1"], ["--no-verify"], ["--resync"]):
        assert main(["dump", log, *options]) == FINE
        assert objects(capsys.readouterr().out)


def test_options_of_kafkas_tool_make_it_kafkas_text(directory: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = str(directory / "orders-3" / f"{NAME}.log")
    assert main(["dump", "--files", f"{log},{log}", "--print-data-log"]) == FINE
    out = capfdbinary.readouterr().out.decode()
    assert out.count("key: key-1 payload: two\n") == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--format", "kafka", "--offsets", "1:"], "Kafka's text has no place for --offsets: use another format"),
        (
            ["--print-data-log", "--resync"],
            "--print-data-log is an option of Kafka's tool, and does not go with --resync",
        ),
        (["--deep-iteration", "--format", "jsonl"], "does not go with --format jsonl"),
        (["--format", "jsonl", "--output", "x"], "--format parquet and --output FILE go together"),
        (["--format", "parquet", "--output", "x", "--follow"], "a Parquet file cannot be followed"),
        (["--since", "yesterday"], "'yesterday' is no time, like 2026-11-16"),
        (["--key", "0xfff", "--format", "jsonl"], "'0xfff' is not a key in hexadecimal digits"),
        (["--since", "5", "--until", "4"], "the range of timestamps ends at 4, before it begins at 5"),
        (["--max-bytes", "many"], "'many' is not a number of bytes"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], told: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(directory), *options]) == COULD_NOT_RUN
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--since", "1700000000001"], [1, 2]),
        (["--until", "2023-11-14T22:13:20.001"], [0, 3]),
        (["--since", "2023-11-14T23:13:20.002+01:00"], [2]),
        (["--key", "key-0"], [0, 3]),
        (["--key", "0x6b65792d31", "--key", "key-2"], [1, 2]),
        (["--key-prefix", "key", "--offsets", ":2"], [0, 1]),
        (["--key-from", "key-1"], [1, 2]),
        (["--key-from", "key-0", "--key-below", "key-1"], [0, 3]),
    ],
)
def test_records_are_chosen_by_time_and_key(
    options: list[str], offsets: list[int], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(directory), *options]) == FINE  # of a directory only the records
    assert [each["offset"] for each in objects(capsys.readouterr().out)] == offsets


def test_parquet_has_everything_in_a_table_for_each_kind(directory: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert main(["dump", str(directory), "--format", "parquet", "--output", str(output)]) == FINE
    assert sorted(path.stem for path in output.iterdir()) == [
        "clean-shutdown",
        "leader-epoch-checkpoint",
        "meta-properties",
        "offset-checkpoint",
        "offset-index",
        "partition-metadata",
        "records",
        "time-index",
        "transaction-index",
    ]
    first, *_, last = pq.read_table(output / "records.parquet").to_pylist()
    assert (first["topic"], first["partition"], first["offset"]) == ("orders", 3, 0)
    assert first["headers"] == [{"key": "trace", "value": b"\x1b[31m"}, {"key": "empty", "value": None}]
    assert (last["value"], last["compression"], last["timestampType"]) == (b"three" * 99, "lz4", "CreateTime")
    assert first["timestamp"].timestamp() == 1_700_000_000
    assert pq.read_table(output / "offset-index.parquet").to_pylist()[0]["position"] == SECOND


@pytest.mark.parametrize("name", files.names())
def test_parquet_has_what_json_has(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(files.FOLDER / f"{name}.bin")
    output = tmp_path / "all.parquet"
    code = main(["dump", source, "--format", "jsonl", "--binary", "hex"])
    lines = objects(capsys.readouterr().out)
    assert main(["dump", source, "--format", "parquet", "--output", str(output)]) == code
    rows = pq.read_table(output)
    stamps = rows.column("timestamp").cast("int64").to_pylist()
    found = rows.drop_columns(["timestamp"]).to_pylist()
    for row, line, stamp in zip(found, lines, stamps, strict=True):
        assert line.pop("timestamp") == stamp
        line["headers"] = [[key, None if value is None else bytes.fromhex(value)] for key, value in line["headers"]]
        row["headers"] = [[header["key"], header["value"]] for header in row["headers"]]
        for field in ("key", "value"):
            line[field] = None if line[field] is None else bytes.fromhex(line[field])
        row["control"] = None if row["control"] is None else json.loads(row["control"])
        assert row == {"control": None, **line}


def test_one_parquet_file_has_room_for_one_table(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "all.parquet"
    assert main(["dump", str(directory), "--format", "parquet", "--output", str(output)]) == COULD_NOT_RUN
    assert "has room for one table" in capsys.readouterr().err
    assert [path for path in tmp_path.iterdir() if path.name.startswith("all")] == []


def at_terminal(arguments: Sequence[str], columns: int, **environment: str) -> str:
    """What the command prints at a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*OCTAVO, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**clean, "TERM": "xterm", "PYTHONUTF8": "1", **environment},
    )
    os.close(theirs)
    out = b"".join(_until_closed(ours))
    os.close(ours)
    assert process.wait(timeout=60) == FINE
    return out.decode().replace("\r\n", "\n")


def _until_closed(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:  # what Linux says when the other end is closed
            return
        if not data:
            return
        yield data


def test_at_a_terminal_it_is_a_table_that_fits(directory: Path) -> None:
    out = at_terminal(["dump", str(directory)], 80)
    plain = ESCAPE.sub("", out)
    assert out != plain
    assert "\x1b" not in plain  # the value of a header has no power over the terminal
    assert [line for line in plain.splitlines() if len(line) > 80] == []
    lines = plain.splitlines()
    assert "       0  2023-11-14 22:13:20.000  key-0       one" in lines
    assert "       2  2023-11-14 22:13:20.002  key-2       null" in lines
    assert "          trace=\\x1b[31m" in lines
    assert "          empty=null" in lines
    assert any(line.startswith("       3  2023-11-14 22:13:20.000  key-0       threethree") for line in lines)
    assert "topic_id  4Qz2wmGmQ9y8lSzYwPG6Lw" in lines
    assert lines[lines.index("orders          3       4") - 1] == "topic   partition  offset"


def test_entries_that_are_wider_than_the_terminal_are_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(struct.pack(">hqqqq", 0, 7, 0, 2, 3) * 2)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["dump", str(path), "--format", "table"]) == FINE
    lines = ["version 0  producerId 7  firstOffset 0  lastOffset 2", "  lastStableOffset 3"]
    assert capsys.readouterr().out.splitlines()[2:] == lines * 2
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["dump", str(path), "--format", "table"]) == FINE
    heading = "version  producerId  firstOffset  lastOffset  lastStableOffset"
    assert capsys.readouterr().out.splitlines()[2:4] == [heading, f"{0:>7}{7:>12}{0:>13}{2:>12}{3:>18}"]


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_there_are_no_colours_where_none_are_wanted(directory: Path, environment: dict[str, str]) -> None:
    out = at_terminal(["dump", str(directory)], 80, **environment)
    assert "\x1b" not in out
    assert "key-0" in out


def test_a_narrow_terminal_is_not_overrun(directory: Path) -> None:
    plain = ESCAPE.sub("", at_terminal(["dump", str(directory / "orders-3" / f"{NAME}.log")], 50))
    assert [line for line in plain.splitlines() if len(line) > 50] == []


def test_a_table_can_be_piped_and_shows_any_character(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    values = ["漢字" * 40, "tab\tnewline\n\x07", "\u202emirrored", b"\xff\x00".decode("latin-1"), "Käfig"]
    path.write_bytes(batch(0, [*(value.encode() for value in values), b"\xff\xfe" * 40, b"", b"\xc3"]))
    assert main(["dump", str(path), "--format", "table"]) == FINE
    out = capsys.readouterr().out
    assert "\x1b" not in out
    ends = [line[len("       0  2023-11-14 22:13:20.000  ") :] for line in out.splitlines() if ":20." in line]
    shown = [end.split(maxsplit=1)[1] if " " in end.strip() else "" for end in ends]
    assert shown[0].startswith("漢字漢字")
    assert shown[0].endswith("…")
    assert shown[1] == "tab\\tnewline\\n\\x07"
    assert shown[2] == "\\u202emirrored"
    assert shown[4] == "Käfig"
    assert shown[5].startswith("0xfffefffe")
    assert shown[6:] == ["", "0xc3"]


def test_damage_in_a_table_is_told_and_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAME}.log"
    data = bytearray(batch(0, [b"one"]) + batch(1, [b"two"]) + batch(2, [b"three"]))
    data[data.index(b"two")] ^= 1
    path.write_bytes(data)
    assert main(["dump", str(path), "--format", "table"]) == DAMAGE_FOUND
    out, err = capsys.readouterr()
    assert ("one" in out, "three" in out, err.count("\n")) == (True, False, 1)
    assert main(["dump", str(path), "--format", "table", "--resync"]) == DAMAGE_FOUND
    out, err = capsys.readouterr()
    assert ("one" in out, "three" in out, "passed over" in err) == (True, True, True)


@pytest.mark.parametrize("form", ["table", "kafka", "jsonl", "parquet"])
def test_what_is_no_file_is_one_sentence(form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    pipe = tmp_path / f"{NAME}.log"
    os.mkfifo(pipe)
    (tmp_path / "empty").mkdir()
    output = ["--output", str(tmp_path / "out")] if form == "parquet" else []
    paths = [str(pipe), str(tmp_path / "empty"), str(tmp_path / "none" / f"{NAME}.log")]
    if form != "kafka":  # which ignores files of other names, as Kafka's tool does
        paths.append("/dev/null")
    for path in paths:
        assert main(["dump", path, "--format", form, *output]) == COULD_NOT_RUN
        told = capfdbinary.readouterr().err.decode()
        assert told.startswith(f"octavo: {path}: ")
        assert told.count("\n") == 1


@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_a_file_that_is_not_kafkas_is_one_sentence(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in (("empty", b""), ("a.txt", b"Dear diary,\nnothing happened.\n"), ("zeros.bin", bytes(100))):
        path = tmp_path / name
        path.write_bytes(content)
        assert main(["dump", str(path), "--format", form]) == COULD_NOT_RUN
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"octavo: {path}: this is no file of Kafka's: it ")


def test_a_segment_without_records_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAME}.log"
    path.touch()
    assert main(["dump", str(path), "--format", "jsonl"]) == FINE
    assert capsys.readouterr() == ("", "")
    assert main(["dump", str(path), "--format", "table"]) == FINE
    assert "no record was written to it yet" in capsys.readouterr().out


@pytest.mark.parametrize("resync", [[], ["--resync"]])
def test_zeros_that_kafka_allocates_in_advance_are_no_damage(
    resync: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(batch(0, [b"one"]) + bytes(100_000))
    assert main(["dump", str(path), "--format", "jsonl", *resync]) == FINE
    out, err = capsys.readouterr()
    assert len(objects(out)) == 1
    assert err == f"octavo: {path}: the last 100000 bytes are zeros, which Kafka writes over later\n"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (f"{NAME}.index", struct.pack(">ii", 3, 120) + b"cut", "an entry takes 8 bytes, and the last one is cut"),
        (f"{NAME}.snapshot", b"\0\1", "a snapshot of producers ends before its entries begin"),
        ("leader-epoch-checkpoint", b"hello", "hello"),
        ("replication-offset-checkpoint", b"0\n2\norders 0 1\n", "2"),
        ("partition.metadata", b"hello", "none of the names that such a file has is in it: topic_id"),
        ("meta.properties", b"\0\0\0", "a file of properties is text"),
        ("quorum-state", b"[1]", "the file is not a JSON object"),
        (".kafka_cleanshutdown", b"\xff", "the file is not a JSON object"),
    ],
)
def test_damage_in_other_files_is_one_sentence(
    name: str, content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for form in ("jsonl", "table"):
        assert main(["dump", str(path), "--format", form]) == DAMAGE_FOUND
        out, err = capsys.readouterr()
        assert err.startswith(f"octavo: {path}: damaged at byte ")
        assert err.count("\n") == 1
        assert told in err
        assert ("120" in out) == (name == f"{NAME}.index")  # what is before the damage is printed


def test_a_name_has_no_power_over_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "\x1b[31m\udcff.log"
    path.write_bytes(batch(0, [b"one"]))
    assert main(["dump", str(path), "--format", "table"]) == FINE
    path.write_bytes(batch(0, [b"one"])[:70])
    assert main(["dump", str(path), "--format", "jsonl"]) == FINE
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\\x1b[31m\\udcff.log" in out
    assert "\\x1b[31m\\udcff.log: the last batch" in err


def test_a_sparse_file_is_not_read_for_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, index = tmp_path / f"{NAME}.log", tmp_path / f"{NAME}.index"
    for path in (log, index):
        path.touch()
        os.truncate(path, 1 << 40)
    for options in ([], ["--resync"]):
        assert main(["dump", str(log), "--format", "jsonl", *options]) == FINE
        assert "bytes are zeros, which Kafka writes over later" in capsys.readouterr().err
    assert main(["dump", str(index), "--format", "jsonl"]) == DAMAGE_FOUND
    assert "none of its kind has so many" in capsys.readouterr().err


def test_a_folder_that_may_not_be_listed_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir(mode=0)
    done = run_obeying_permissions([*OCTAVO, "dump", str(folder)])
    told = f"octavo: {folder}: cannot be read: Permission denied\n"
    assert (done.returncode, done.stdout, done.stderr) == (COULD_NOT_RUN, "", told)


class _Growing(io.BytesIO):
    """Standard output that lets the file grow at every write, and ends the dump when nothing is left to do."""

    def __init__(self, steps: Iterator[str]) -> None:
        super().__init__()
        self._steps = steps

    def write(self, data: Any) -> int:
        written = super().write(data)
        if next(self._steps, None) is None:
            raise KeyboardInterrupt
        return written


def test_a_partition_is_followed_as_it_grows_and_rolls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = folder / f"{NAME}.log", folder / "00000000000000000003.log"
    first.write_bytes(batch(0, [b"a"]))

    def steps() -> Iterator[str]:
        data = batch(1, [b"b"])
        with first.open("ab") as file:
            file.write(data + batch(2, [b"c"])[:50])  # the last one is still being written
        yield "appended"
        first.write_bytes(batch(0, [b"a"]) + data + batch(2, [b"c"]))
        yield "completed"
        second.write_bytes(batch(3, [b"d"]) + bytes(500))  # in a file that is as large as it will be
        yield "rolled"
        with second.open("r+b") as file:
            file.seek(len(batch(3, [b"d"])))
            file.write(batch(4, [b"e"]))
        yield "filled"

    out = _Growing(steps())
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, write_through=True))
    assert main(["dump", str(folder), "--follow", "--binary", "text"]) == 130
    assert [json.loads(line)["value"] for line in out.getvalue().splitlines()] == ["a", "b", "c", "d", "e"]


def test_what_does_not_grow_is_not_followed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory / "orders-3" / f"{NAME}.index"
    assert main(["dump", str(path), "--follow"]) == COULD_NOT_RUN
    assert capsys.readouterr().err == f"octavo: {path} is an index of offsets: only segments can be followed\n"
