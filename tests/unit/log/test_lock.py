"""The lock within Octavo. With Apache Kafka on the other side: `tests/kafka/test_log_lock.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from octavo.errors import DirectoryLocked
from octavo.log.lock import DirectoryLock, lock_owner
from tests.permissions import run_obeying_permissions

TRY = (
    "import sys; from pathlib import Path\n"
    "from octavo.log.lock import DirectoryLock, lock_owner\n"
    "from octavo.errors import DirectoryLocked\n"
    "folder = Path(sys.argv[1])\n"
    "try: DirectoryLock.acquire(folder); print('free', lock_owner(folder) is not None)\n"
    "except DirectoryLocked as refused: print(refused.pid, lock_owner(folder))\n"
)


def another_process(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", TRY, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_another_process_is_refused_with_the_owner(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path) as lock:
        assert lock.folder == tmp_path
        assert another_process(tmp_path) == f"{os.getpid()} {os.getpid()}"
    assert another_process(tmp_path) == "free True"
    assert (tmp_path / ".lock").read_bytes() == b""


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
