"""Directories that are not as they should be: a clear error, and they are left as they were found."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import BadDirectory, DirectoryLocked, FormatError, LogError
from octavo.log import DataDirectory
from tests.permissions import obey_permissions
from tests.unit.log.directories import COUNT, TIME_MS, keys, left_as_it_was, segments, write_directory
from tests.unit.log.forks import run_in_fork


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_directory(tmp_path_factory.mktemp("written") / "data")


@pytest.fixture(params=["closed cleanly", "crashed"])
def folder(request: pytest.FixtureRequest, written: Path, tmp_path: Path) -> Path:
    """A directory to be spoilt."""
    copy = tmp_path / "data"
    shutil.copytree(written, copy)
    if request.param == "crashed":
        (copy / ".kafka_cleanshutdown").unlink()
    return copy


def refuse(folder: Path, kind: type[Exception] | tuple[type[Exception], ...], words: str) -> None:
    """The directory cannot be opened, and stays as it is."""
    with left_as_it_was(folder), pytest.raises(kind, match=words):
        DataDirectory.open(folder)


# -------------------------------------------------------------------------------------------------------- what is there


def test_a_directory_that_is_as_it_should_be_opens(folder: Path) -> None:
    """What is refused below is refused for its own fault."""
    with DataDirectory.open(folder) as data:
        for topic, partition in (("a", 0), ("b", 0), ("b", 1)):
            assert keys(data.log(topic, partition)) == list(range(COUNT))


def test_reading_leaves_a_directory_as_it_was(folder: Path) -> None:
    with left_as_it_was(folder), DataDirectory.open(folder, read_only=True) as data:
        assert keys(data.log("b", 1)) == list(range(COUNT))


def test_a_directory_that_does_not_exist_is_not_made_by_a_reader(tmp_path: Path) -> None:
    with left_as_it_was(tmp_path), pytest.raises((LogError, FileNotFoundError), match="nowhere"):
        DataDirectory.open(tmp_path / "nowhere", read_only=True)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with left_as_it_was(tmp_path), pytest.raises((LogError, NotADirectoryError), match="file"):
        DataDirectory.open(tmp_path / "file")


def test_a_missing_segment_in_the_middle(folder: Path) -> None:
    second = segments(folder / "b-1")[1].stem
    for path in (folder / "b-1").glob(second + ".*"):
        path.unlink()
    refuse(folder, BadDirectory, "no segment holds the offsets")


@pytest.mark.parametrize("name", ["notes.log", "123.log", "0000000000000000000x.index", "-0000000000000000001.log"])
def test_a_foreign_file_among_the_segments(folder: Path, name: str) -> None:
    (folder / "b-1" / name).write_bytes(b"hello")
    refuse(folder, BadDirectory, name)


@pytest.mark.parametrize("name", ["notes.txt", "b-1/notes.txt"])
def test_other_files_do_no_harm(folder: Path, name: str) -> None:
    """As in Kafka, which looks at nothing that cannot be its own."""
    (folder / name).write_bytes(b"hello")
    with DataDirectory.open(folder) as data:
        assert keys(data.log("b", 1)) == list(range(COUNT))
    assert (folder / name).read_bytes() == b"hello"


@pytest.mark.parametrize("name", ["photos", "photos-", "photos-x", "-1"])
def test_a_foreign_folder(folder: Path, name: str) -> None:
    """As in Kafka, which does not start on such a directory."""
    (folder / name).mkdir()
    (folder / name / "beach.jpg").write_bytes(b"\xff\xd8")
    refuse(folder, BadDirectory, name)


@pytest.mark.parametrize("name", ["b-1", "b-1/00000000000000000000.log"])
def test_a_file_for_a_folder_and_a_folder_for_a_file(folder: Path, name: str) -> None:
    path = folder / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_bytes(b"")
    else:
        path.unlink()
        path.mkdir()
    refuse(folder, LogError, "b-1")


# ------------------------------------------------------------------------------------------------------- permissions


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (".", 0o000),
        (".", 0o444),
        (".", 0o555),
        (".lock", 0o000),
        ("b-1", 0o000),
        ("b-1/00000000000000000000.log", 0o000),
        ("meta.properties", 0o000),
        ("recovery-point-offset-checkpoint", 0o000),
        ("b-1/partition.metadata", 0o000),
        ("b-1/leader-epoch-checkpoint", 0o000),
    ],
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_no_permission(folder: Path, name: str, mode: int, capfd: pytest.CaptureFixture[str]) -> None:
    def open_without_permission() -> DataDirectory:
        obey_permissions()
        return DataDirectory.open(folder)

    path = folder / name
    usual = path.stat().st_mode
    with left_as_it_was(folder):
        path.chmod(mode)
        said = run_in_fork(open_without_permission)
        path.chmod(usual)
    assert capfd.readouterr().err == ""
    assert said.split(":")[0] in {"PermissionError", "BadDirectory"}, said
    assert str(folder) in said


# -------------------------------------------------------------------------------------------- indexes that tell lies


def _beyond_the_file(data: bytes, entry: struct.Struct) -> bytes:
    first, second = entry.unpack(data[-entry.size :])
    return data[: -entry.size] + entry.pack(first, second + 1_000_000)


def _reversed(data: bytes, entry: struct.Struct) -> bytes:
    return b"".join(reversed([data[at : at + entry.size] for at in range(0, len(data), entry.size)]))


def _off_by_one(data: bytes, entry: struct.Struct) -> bytes:
    return b"".join(entry.pack(first, second + 1) for first, second in entry.iter_unpack(data))


LIES: Final[dict[str, Callable[[bytes, struct.Struct], bytes]]] = {
    "entries point behind the file": _beyond_the_file,
    "entries are in the wrong order": _reversed,
    "entries point into batches": _off_by_one,
    "zeros behind the entries": lambda data, entry: data + bytes(10 * entry.size),
    "zeros in place of all entries": lambda data, entry: bytes(len(data)),
    "the last entry is cut": lambda data, entry: data[:-3],
    "no entries": lambda data, entry: b"",
    "one entry for all": lambda data, entry: data[: entry.size] * (len(data) // entry.size),
    "other entries": lambda data, entry: bytes(range(1, 1 + len(data))),
    "negative numbers": lambda data, entry: entry.pack(-1, -1) * (len(data) // entry.size),
    "the largest numbers": lambda data, entry: b"\x7f" + b"\xff" * (len(data) - 1),
}


# That a segment has later records than its last entry says, only its data can tell: Kafka believes it as well.
UNSEEN: Final = {("one entry for all", ".timeindex")}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("lie", LIES)
def test_an_index_that_lies_does_not_mislead(folder: Path, lie: str, suffix: str, read_only: bool) -> None:
    """Whatever the index says, what is found is what is in the data."""
    entry = struct.Struct(">ii" if suffix == ".index" else ">qi")
    for path in segments(folder / "b-1", suffix):
        data = path.read_bytes()
        path.write_bytes(LIES[lie](data, entry) if data else data)
    reader = DataDirectory.open(folder, read_only=True) if read_only else DataDirectory.open(folder)
    with reader:
        log = reader.log("b", 1)
        assert keys(log) == list(range(COUNT))
        for offset in range(COUNT):
            assert log.read(offset, 1).records[:8] == offset.to_bytes(8, "big")
            found = log.offset_for_timestamp(TIME_MS + offset)
            if (lie, suffix) not in UNSEEN:
                assert found is not None
                assert (found.offset, found.timestamp_ms) == (offset, TIME_MS + offset)


def test_reading_leaves_an_index_that_lies_as_it_was(folder: Path) -> None:
    for path in segments(folder / "b-1", ".index"):
        path.write_bytes(_reversed(path.read_bytes(), struct.Struct(">ii")))
    with left_as_it_was(folder), DataDirectory.open(folder, read_only=True) as data:
        assert keys(data.log("b", 1)) == list(range(COUNT))


# ---------------------------------------------------------------------------------------------------- future formats


def _replace(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def test_meta_properties_of_the_future(folder: Path) -> None:
    _replace(folder / "meta.properties", b"version=1", b"version=9")
    refuse(folder, (FormatError, LogError), "meta.properties")


@pytest.mark.parametrize(
    "name",
    [
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "b-1/leader-epoch-checkpoint",
    ],
)
def test_a_checkpoint_of_the_future_can_be_done_without(folder: Path, name: str) -> None:
    """All is checked, or nothing is hidden, and nothing is lost: see test_damaged_state."""
    _replace(folder / name, b"0\n", b"1\n")
    with DataDirectory.open(folder) as data:
        assert keys(data.log("b", 1)) == list(range(COUNT))
        named = {found.file for found in (*data.ignored, *data.log("b", 1).recovery.ignored)}
        assert named == {Path(name).name}


@pytest.mark.parametrize("line", [b"version: -1", b"version: x", b"edition: 0"])
def test_partition_metadata_that_nobody_wrote(folder: Path, line: bytes) -> None:
    _replace(folder / "b-1" / "partition.metadata", b"version: 0", line)
    refuse(folder, (FormatError, LogError), "partition.metadata")


def test_partition_metadata_of_the_future(folder: Path) -> None:
    """Kafka reads what it knows of them, whatever the version."""
    _replace(folder / "b-1" / "partition.metadata", b"version: 0", b"version: 9")
    with DataDirectory.open(folder) as data:
        assert keys(data.log("b", 1)) == list(range(COUNT))


@pytest.mark.parametrize("which", [0, 1, -1])
def test_batches_of_the_future(folder: Path, which: int) -> None:
    """Of a magic that nobody knows yet. That is no damage: nothing may be cut."""
    path = segments(folder / "b-1")[which]
    data = bytearray(path.read_bytes())
    data[16] = 3
    data[17] ^= 1  # with the checksum of a batch of magic 2 it would be a damaged one of these
    path.write_bytes(data)
    refuse(folder, (FormatError, LogError), "magic 3")


# -------------------------------------------------------------------------------------------------------------- locks

_HOLD: Final = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""
_HOLD_IN_JAVA: Final = """
import java.nio.channels.*;
import java.nio.file.*;

class Hold {
    public static void main(String[] arguments) throws Exception {
        var channel = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        channel.lock();
        System.out.println("locked");
        System.in.read();
    }
}
"""


@contextmanager
def held(command: list[str]) -> Iterator[int]:
    """A process that holds the lock; its id."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "locked\n"
        yield process.pid
        process.stdin.close()


def test_a_lock_that_another_process_holds(folder: Path) -> None:
    with held([sys.executable, "-c", _HOLD, str(folder / ".lock")]) as pid:
        refuse(folder, DirectoryLocked, str(pid))
        with left_as_it_was(folder), DataDirectory.open(folder, read_only=True) as data:  # readers need none
            assert keys(data.log("a", 0)) == list(range(COUNT))
    with DataDirectory.open(folder):
        pass


def test_a_lock_that_a_java_process_holds(java: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "Hold.java").write_text(_HOLD_IN_JAVA)
    with held([java, str(tmp_path / "Hold.java"), str(folder / ".lock")]) as pid:
        refuse(folder, DirectoryLocked, str(pid))


def test_a_lock_that_this_process_holds(folder: Path) -> None:
    with DataDirectory.open(folder):
        refuse(folder, DirectoryLocked, "in use")
    with DataDirectory.open(folder):
        pass


def test_the_folder_of_a_partition_is_no_data_directory(tmp_path: Path) -> None:
    write_directory(tmp_path / "data")
    (tmp_path / "elsewhere").mkdir()
    shutil.copytree(tmp_path / "data" / "a-0", tmp_path / "elsewhere" / "a-0")
    shutil.copytree(tmp_path / "data" / "a-0", tmp_path / "copy")
    for path, advice in (
        (tmp_path / "data" / "a-0", f"inside the data directory {tmp_path / 'data'}: open that one"),
        (tmp_path / "data" / "new", f"inside the data directory {tmp_path / 'data'}: open that one"),
        (tmp_path / "elsewhere" / "a-0", f"open {tmp_path / 'elsewhere'}, or Log.open("),
        (tmp_path / "copy", "a data directory has folders such as events-0"),
    ):
        with left_as_it_was(tmp_path):
            with pytest.raises(BadDirectory, match=re.escape(advice)):
                DataDirectory.open(path)
            with pytest.raises(BadDirectory, match=r"open|data directory|no such folder"):
                DataDirectory.open(path, read_only=True)


def test_a_copy_inside_a_data_directory_can_be_read(tmp_path: Path) -> None:
    shutil.copytree(write_directory(tmp_path / "data"), tmp_path / "copy")
    (tmp_path / "copy").rename(tmp_path / "data" / "copy")
    with DataDirectory.open(tmp_path / "data" / "copy", read_only=True) as watched:
        assert keys(watched.log("a", 0)) == list(range(COUNT))


def test_a_data_directory_may_be_named_like_a_partition(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "disk-1") as data:
        data.create_topic("events")
    with DataDirectory.open(tmp_path / "disk-1", read_only=True) as watched:
        assert len(watched.partitions()) == 1
