"""The lock within Octavo. With Apache Kafka on the other side: `tests/kafka/test_log_lock.py`."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.errors import DirectoryLocked, LockLost
from octavo.log.ownership.lock import DirectoryLock, _process_space, broker_in, is_locked, lock_owner
from tests.permissions import run_obeying_permissions

NO_SUCH_COMMAND = 9999  # of `fcntl`
TRY = (
    "import sys; from pathlib import Path\n"
    "from octavo.log.ownership.lock import DirectoryLock, lock_owner\n"
    "from octavo.errors import DirectoryLocked\n"
    "folder = Path(sys.argv[1])\n"
    "try: held = DirectoryLock.acquire(folder); print('free', lock_owner(folder) is not None)\n"
    "except DirectoryLocked as refused: print(refused.pid, lock_owner(folder))\n"
)


def another_process(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", TRY, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def another_process_finds_it_locked(folder: Path) -> bool:
    ask = "import sys; from pathlib import Path; from octavo.log.ownership.lock import is_locked\n"
    ask += "print(is_locked(Path(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", ask, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout == "True\n"


def test_another_process_is_refused_with_the_owner(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        assert lock.folder == tmp_path
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"
    assert (tmp_path / ".lock").read_bytes() == b""
    assert another_process(tmp_path) == "free True"


def test_a_second_opener_in_this_process_is_refused_and_the_lock_still_holds(tmp_path: Path) -> None:
    link = tmp_path / "link"
    folder = tmp_path / "data"
    folder.mkdir()
    link.symlink_to(folder)
    with DirectoryLock.acquire(folder):
        for path in (folder, link):
            with pytest.raises(DirectoryLocked, match="is in use by process") as refused:
                DirectoryLock.acquire(path)
            assert refused.value.pid == os.getpid()
            assert lock_owner(path) == os.getpid()
        assert another_process(folder) == f"{os.getpid()} {os.getpid()}"


def test_it_can_be_had_again_once_it_is_released(tmp_path: Path) -> None:
    lock = DirectoryLock.acquire(tmp_path)
    lock.release()
    lock.release()
    assert lock_owner(tmp_path) is None
    with DirectoryLock.acquire(tmp_path):
        lock.release()  # is not its own any more
        assert lock_owner(tmp_path) == os.getpid()


def test_one_of_many_threads_gets_it(tmp_path: Path) -> None:
    got: list[DirectoryLock] = []
    refused: list[int | None] = []
    start = threading.Barrier(8)

    def run() -> None:
        start.wait()
        try:
            got.append(DirectoryLock.acquire(tmp_path))
        except DirectoryLocked as error:
            refused.append(error.pid)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [os.getpid()] * 7
    got[0].release()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_the_owner_is_refused_with_its_parent(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path):
        child = os.fork()
        if not child:
            code = 2
            try:
                DirectoryLock.acquire(tmp_path)
            except DirectoryLocked as refused:
                code = 0 if refused.pid == os.getppid() else 1
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"


def test_nobody_has_what_is_not_there(tmp_path: Path) -> None:
    assert lock_owner(tmp_path) is None
    with pytest.raises(FileNotFoundError):
        DirectoryLock.acquire(tmp_path / "missing")


def test_a_folder_that_cannot_be_written_to_is_not_locked(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = run_obeying_permissions([sys.executable, "-c", TRY, str(tmp_path)])
    assert "PermissionError" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_copying_the_directory_in_the_same_process_does_not_give_the_lock_away(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with DirectoryLock.acquire(folder) as lock:
        shutil.copytree(folder, tmp_path / "backup")
        (folder / ".lock").read_bytes()
        lock.check_lock()
        assert another_process(folder) == f"{os.getpid()} {os.getpid()}"
    with DirectoryLock.acquire(tmp_path / "backup"):
        pass  # the process id that was copied says nothing


def test_a_process_that_was_killed_is_not_named_as_the_owner(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text(f"{os.getpid()} {_process_space()}\n")
    assert lock_owner(tmp_path) is None
    with DirectoryLock.acquire(tmp_path):
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"


@pytest.mark.parametrize("note", ["", "x", "1", "1 elsewhere 7", "9" * 2000, "\0\xff"])
def test_an_owner_that_the_file_does_not_tell_is_another_process(tmp_path: Path, note: str) -> None:
    with DirectoryLock.acquire(tmp_path):
        (tmp_path / ".lock").write_bytes(note.encode("latin-1"))
        assert another_process(tmp_path) == "None None"


@pytest.mark.parametrize("what", ["deleted", "replaced", "another locks it"])
def test_a_lock_file_that_is_not_the_locked_one_is_noticed(tmp_path: Path, what: str) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        lock.check_lock()
        (tmp_path / ".lock").unlink()
        if what == "replaced":
            (tmp_path / ".lock").touch()
        if what == "another locks it":
            assert another_process(tmp_path) == "free True"
        with pytest.raises(DirectoryLocked):  # in this process it is known nevertheless
            DirectoryLock.acquire(tmp_path)
        lock.check()
        for check in (lock.check_lock, lock.check, lock.check_lock):
            with pytest.raises(LockLost, match=re.escape(f"{tmp_path}: the lock file was deleted or replaced")):
                check()
    with DirectoryLock.acquire(tmp_path) as again:
        again.check_lock()


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_file_that_is_a_link_to_somebody_s_file_is_locked_and_not_overwritten(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("what somebody wrote\n")
    folder = tmp_path / "data"
    folder.mkdir()
    link(precious, folder / ".lock")
    with DirectoryLock.acquire(folder):
        assert another_process(folder) == "None None"
        assert precious.read_text() == "what somebody wrote\n"
    assert precious.read_text() == "what somebody wrote\n"


def test_a_descriptor_that_somebody_closed_is_noticed_and_not_closed_again(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        assert lock._file is not None
        descriptor = lock._file.descriptor
        os.close(descriptor)
        other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
        os.dup2(other, descriptor)
        os.write(descriptor, b"kept")
        with pytest.raises(LockLost):
            lock.check_lock()
    assert os.pread(descriptor, 9, 0) == b"kept"
    os.close(descriptor)
    if other != descriptor:
        os.close(other)


@pytest.fixture
def posix_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has this process take the lock of systems without open-file-description locks."""
    monkeypatch.setattr("octavo.log.ownership.record_lock._OFD_SETLK", NO_SUCH_COMMAND)


@pytest.mark.usefixtures("posix_lock")
def test_a_system_without_such_locks_gets_the_posix_lock(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path):
        with pytest.raises(DirectoryLocked):
            DirectoryLock.acquire(tmp_path)
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"
    assert another_process(tmp_path) == "free True"


@pytest.mark.usefixtures("posix_lock")
def test_a_posix_lock_that_was_lost_is_taken_again(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        (tmp_path / ".lock").read_bytes()
        lock.check_lock()
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"


@pytest.mark.usefixtures("posix_lock")
def test_a_posix_lock_that_another_process_has_by_now_is_noticed(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        (tmp_path / ".lock").read_bytes()
        with subprocess.Popen(
            [sys.executable, "-c", f"{TRY}sys.stdout.flush(); sys.stdin.read()", str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"free True\n"
            for _ in range(2):
                with pytest.raises(LockLost, match="or its lock lost"):
                    lock.check_lock()


@pytest.mark.usefixtures("posix_lock")
def test_a_posix_lock_that_another_process_has_had_meanwhile_is_noticed(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        lock.check_lock()
        (tmp_path / ".lock").read_bytes()
        assert another_process(tmp_path) == "free True"
        with pytest.raises(LockLost, match="or its lock lost"):
            lock.check_lock()


@pytest.mark.usefixtures("posix_lock")
@pytest.mark.parametrize("ask", [is_locked, lock_owner, broker_in])
def test_to_ask_for_the_own_posix_lock_does_not_give_it_away(tmp_path: Path, ask: Callable[[Path], object]) -> None:
    with DirectoryLock.acquire(tmp_path):
        ask(tmp_path)
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"


def test_whether_a_directory_is_locked(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "missing")
    (tmp_path / ".lock").mkdir()
    assert not is_locked(tmp_path)
    (tmp_path / ".lock").rmdir()
    (tmp_path / ".lock").touch()
    assert not is_locked(tmp_path)
    with DirectoryLock.acquire(tmp_path):
        assert is_locked(tmp_path)
        assert another_process_finds_it_locked(tmp_path)
    assert not is_locked(tmp_path)


def test_a_full_disk_does_not_keep_the_lock_from_being_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "pwrite", full)
    with DirectoryLock.acquire(tmp_path):
        assert another_process(tmp_path) == "None None"
