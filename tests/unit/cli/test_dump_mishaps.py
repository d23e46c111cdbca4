"""`octavo dump` of folders in which something is amiss, and of options that do not go together."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from octavo.cli import main
from octavo.cli.exits import BROKEN_PIPE, COULD_NOT_RUN, FINE, INTERRUPTED
from octavo.inspect import listing
from octavo.records import BatchBuilder
from tests.golden.directories import unpack
from tests.permissions import run_obeying_permissions
from tests.unit.cli.test_command import OCTAVO

NAME = "00000000000000000000"


def batch(offset: int, key: bytes = b"key") -> bytes:
    builder = BatchBuilder(base_offset=offset)
    builder.append(key, b"value", timestamp_ms=0)
    return builder.build()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with three partitions."""
    for number in range(3):
        folder = tmp_path / "data" / f"orders-{number}"
        folder.mkdir(parents=True)
        (folder / f"{NAME}.log").write_bytes(batch(0))
    return tmp_path / "data"


def partitions(out: str) -> list[int]:
    return [json.loads(line)["partition"] for line in out.splitlines()]


def test_a_partition_that_may_not_be_listed_does_not_hide_the_others(directory: Path) -> None:
    closed = directory / "orders-1"
    closed.chmod(0)
    done = run_obeying_permissions([*OCTAVO, "dump", str(directory), "--format", "jsonl"])
    closed.chmod(0o755)
    assert (done.returncode, partitions(done.stdout)) == (COULD_NOT_RUN, [0, 2])
    assert done.stderr == f"octavo: {closed}: cannot be read: Permission denied\n"


def test_a_partition_that_is_deleted_meanwhile_is_left_out(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = listing._entries

    def entries_after_deletion(folder: Path) -> list[os.DirEntry[str]]:
        found = entries(folder)
        if folder == directory:
            (directory / "orders-1" / f"{NAME}.log").unlink()
            (directory / "orders-1").rmdir()
        return found

    monkeypatch.setattr(listing, "_entries", entries_after_deletion)
    assert main(["dump", str(directory), "--format", "jsonl"]) == FINE
    out, err = capsys.readouterr()
    assert (partitions(out), err) == ([0, 2], "")


def test_deleted_segments_are_not_mixed_into_chosen_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = unpack("closed", tmp_path) / "table-0"
    deleted = [path for path in folder.iterdir() if path.name.endswith(".log.deleted")]
    assert deleted
    assert main(["dump", str(folder), "--offsets", "0:", "--format", "jsonl"]) == FINE
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["file"] for row in rows}.isdisjoint(map(str, deleted))
    offsets = [row["offset"] for row in rows]
    assert offsets == sorted(set(offsets))
    assert main(["dump", str(deleted[0]), "--format", "jsonl"]) == FINE
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(row["topic"], row["partition"]) for row in rows} == {("table", 0)}


def test_with_a_filter_only_records_of_named_files_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in sorted((unpack("dumped", tmp_path) / "compacted-0").iterdir())]
    assert main(["dump", *files, "--key", "1", "--format", "jsonl", "--binary", "text"]) == FINE
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    assert {row.get("key") for row in rows} == {"1"}


def without_standard_error(arguments: list[str], tmp_path: Path) -> tuple[int, bytes]:
    out = tmp_path / "out"
    with out.open("wb") as file:
        code = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *OCTAVO, *arguments], stdout=file, check=False).returncode
    return code, out.read_bytes()


@pytest.mark.parametrize("form", [[], ["--format", "jsonl"]])
def test_a_closed_standard_error_changes_nothing(form: list[str], directory: Path, tmp_path: Path) -> None:
    with_it = subprocess.run([*OCTAVO, "dump", str(directory), *form], stdout=subprocess.PIPE, check=True).stdout
    assert with_it
    assert without_standard_error(["dump", str(directory), *form], tmp_path) == (FINE, with_it)
    assert without_standard_error(["dump", "missing.log", *form], tmp_path) == (COULD_NOT_RUN, b"")


def test_an_error_has_no_power_over_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(tmp_path / "\x1b[31m.log")]) == COULD_NOT_RUN
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\\x1b[31m.log" in err


def test_files_may_be_repeated(directory: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    one, two = (str(directory / f"orders-{number}" / f"{NAME}.log") for number in range(2))
    assert main(["dump", "--files", one, "--files", two]) == FINE
    apart = capfdbinary.readouterr().out
    assert main(["dump", "--files", f"{one},{two}"]) == FINE
    assert capfdbinary.readouterr().out == apart
    assert one.encode() in apart
    assert two.encode() in apart


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--format", "table", "--binary", "hex"],
            "--binary is for --format jsonl, and does not go with --format table",
        ),
        (["--key-from", "b", "--key-below", "a"], "the range of keys ends at b'a', before it begins at b'b'"),
        (["--value-format", "avro"], "--value-format avro needs --schema or --schema-folder"),
        (["--key-format", "avro"], "--key-format avro needs --key-schema or --key-schema-folder"),
        (
            ["--value-format", "avro", "--schema", "missing.avsc"],
            "missing.avsc: cannot be read: there is no such file, and it is no schema either",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: list[str], told: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(directory), *options]) == COULD_NOT_RUN
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", f"octavo: {told}")


def test_a_checkpoint_whose_name_is_no_snapshots_is_lines_of_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.checkpoint"
    path.write_bytes(batch(0))
    assert main(["dump", str(path)]) == FINE
    out, err = capsys.readouterr()
    assert (json.loads(out)["offset"], err) == (0, "")


def parquet(directory: Path, output: Path) -> int:
    return main(["dump", str(directory / "orders-0" / f"{NAME}.log"), "--format", "parquet", "--output", str(output)])


def test_only_a_table_of_an_earlier_dump_is_replaced(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "all.parquet"
    assert parquet(directory, output) == FINE
    first = output.stat().st_ino
    assert parquet(directory, output) == FINE
    assert output.stat().st_ino != first
    precious, link, pipe, foreign = (tmp_path / f"{name}.parquet" for name in ("precious", "link", "pipe", "foreign"))
    precious.write_text("precious")
    link.symlink_to(output)
    os.mkfifo(pipe)
    pq.write_table(pa.table({"a": [1]}), foreign)
    before = sorted(tmp_path.iterdir())
    for path in (precious, link, pipe, foreign, tmp_path / "missing" / "a.parquet"):
        capsys.readouterr()
        assert parquet(directory, path) == COULD_NOT_RUN
        err = capsys.readouterr().err
        assert err.startswith(f"octavo: {path}")
        assert (err.count("\n"), "rrno" in err) == (1, False)
    assert sorted(tmp_path.iterdir()) == before
    assert (precious.read_text(), link.is_symlink()) == ("precious", True)


def test_a_folder_with_tables_is_not_mixed_with_new_ones(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tables"
    assert parquet(directory, output) == FINE
    assert parquet(directory, output) == COULD_NOT_RUN
    told = f"octavo: {output} has tables of an earlier dump, records.parquet: name another folder\n"
    assert capsys.readouterr().err == told


def test_following_ends_when_nobody_reads_any_more(directory: Path) -> None:
    process = subprocess.Popen(
        [*OCTAVO, "dump", str(directory), "--follow", "--format", "jsonl"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == BROKEN_PIPE


def followed(path: Path, steps: Iterator[object], monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[tuple[int, int]]]:
    """Follow a path, and take one step whenever nothing is new. Returns the exit code, and what was printed."""

    def pause() -> None:
        if next(steps, None) is None:
            raise KeyboardInterrupt

    out = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, write_through=True))
    monkeypatch.setattr("octavo.cli.dump_follow._pause", pause)
    code = main(["dump", str(path), "--follow", "--format", "jsonl"])
    rows = map(json.loads, out.getvalue().splitlines())
    return code, [(row["partition"], row["offset"]) for row in rows]


def test_partitions_are_followed_as_they_come_and_go(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def steps() -> Iterator[str]:
        (directory / "orders-3").mkdir()
        (directory / "orders-3" / f"{NAME}.log").write_bytes(batch(0))
        yield "created"
        (directory / "orders-0").rename(directory / f"orders-0.{'0' * 32}-delete")
        yield "deleted"
        (directory / "orders-0").mkdir()
        (directory / "orders-0" / f"{NAME}.log").write_bytes(batch(0) + batch(1))
        yield "created again"

    code, found = followed(directory, steps(), monkeypatch)
    assert (code, found) == (INTERRUPTED, [(0, 0), (1, 0), (2, 0), (3, 0), (0, 0), (0, 1)])
    told = f"octavo: {directory / 'orders-0'}: cannot be read: it was deleted while it was followed\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("is_folder", [True, False])
def test_following_ends_when_all_is_deleted(
    is_folder: bool, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = directory / "orders-0", directory / "orders-0" / f"{NAME}.log"

    def steps() -> Iterator[str]:
        file.unlink()
        folder.rmdir()
        yield "deleted"
        raise AssertionError("it still goes on")

    code, found = followed(folder if is_folder else file, steps(), monkeypatch)
    assert (code, found) == (COULD_NOT_RUN, [(0, 0)])
    assert "it was deleted while it was followed" in capsys.readouterr().err


def test_a_log_that_begins_again_is_followed_from_its_beginning(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = directory / "orders-0"
    (folder / f"{NAME}.log").rename(folder / "00000000000000000007.log")
    (folder / "00000000000000000007.log").write_bytes(batch(7))

    def steps() -> Iterator[str]:
        (folder / "00000000000000000007.log").unlink()
        (folder / "00000000000000000003.log").write_bytes(batch(3))
        yield "begun again"

    assert followed(folder, steps(), monkeypatch) == (INTERRUPTED, [(0, 7), (0, 3)])


@pytest.mark.parametrize("command", [[], ["dump"]])
def test_help_fits_into_eighty_columns(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command, "--help"]) == FINE
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("columns", [30, 40, 42, 43, 50, 80])
@pytest.mark.parametrize("offset", [0, 2**62])
def test_a_table_is_never_wider_than_the_terminal(
    columns: int, offset: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ("漢字" * 25 + ".log")
    builder = BatchBuilder(base_offset=offset)
    builder.append("鍵".encode() * 40, b"value " * 40, timestamp_ms=0, headers=[("見出し" * 20, b"v" * 100)])
    builder.append(b"\xff" * 50, None, timestamp_ms=2**60)
    path.write_bytes(builder.build())
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["dump", str(path), "--format", "table"]) == FINE
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert [line for line in lines if cell_len(line) > max(40, columns)] == []
    assert "…" in lines[0]
    assert lines[0].endswith("漢字.log")
