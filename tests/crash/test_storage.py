"""The crash storage itself: what it loses, what it never loses, and where it stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.disk import (
    ANY_NAMES,
    POWER_CUTS,
    PROCESS_DIED,
    SECTOR,
    Data,
    Image,
    Names,
    Survival,
    read_image,
    write_image,
)
from tests.crash.storage import CrashStorage, FastStorage, Moment, PowerCut

ALL_WAYS = (*POWER_CUTS, *ANY_NAMES, PROCESS_DIED)
KEPT_NAMES = Survival(Names.ALL, Data.SECTORS)


@pytest.fixture
def storage(tmp_path: Path) -> CrashStorage:
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "old").write_bytes(b"o" * 1000)
    return CrashStorage(folder)


def images(storage: CrashStorage, *ways: Survival, count: int = 200) -> Iterator[Image]:
    disk = storage.disk()
    for seed in range(count):
        for way in ways or ALL_WAYS:
            yield disk.image(way, Random(seed))


def contents(storage: CrashStorage, name: str, *ways: Survival) -> Counter[bytes | None]:
    return Counter(image.get(name) for image in images(storage, *ways))


def write(storage: CrashStorage, name: str, data: bytes, position: int = 0, *, sync: bool = False) -> None:
    file = storage.open_to_write(storage.folder / name, create=True)
    file.write_at([data], position)
    if sync:
        file.sync()


def test_what_was_there_before_stays(storage: CrashStorage) -> None:
    write(storage, "new", b"n")
    assert all(image["old"] == b"o" * 1000 for image in images(storage))


def test_a_synced_file_in_a_synced_folder_stays(storage: CrashStorage) -> None:
    write(storage, "new", b"n" * 1000, sync=True)
    storage.sync_folder(storage.folder)
    write(storage, "new", b"m" * 1000, 1000)  # this one is lost, torn, or there
    found = contents(storage, "new")
    assert all(content is not None and content[:1000] == b"n" * 1000 for content in found)
    assert {b"n" * 1000, b"n" * 1000 + b"m" * 1000} < found.keys()


def test_a_synced_file_may_lose_its_name(storage: CrashStorage) -> None:
    write(storage, "new", b"n" * 10, sync=True)
    assert contents(storage, "new").keys() == {None, b"n" * 10}


def test_a_synced_name_may_lose_its_bytes(storage: CrashStorage) -> None:
    write(storage, "new", b"n" * 10)
    storage.sync_folder(storage.folder)
    found = contents(storage, "new")
    assert {b"", bytes(10), b"n" * 10, b"n" * 3} < found.keys()  # torn at any byte
    assert None not in found


def test_writes_are_reordered(storage: CrashStorage) -> None:
    """The second is there and the first is not."""
    write(storage, "old", b"1" * 8, 0)
    write(storage, "old", b"2" * 8, 600)
    assert any(
        content and content[:8] == b"o" * 8 and content[600:608] == b"2" * 8 for content in contents(storage, "old")
    )


def test_sectors_are_whole_unless_a_write_is_torn(storage: CrashStorage) -> None:
    write(storage, "old", b"n" * 1000)
    for content in contents(storage, "old", KEPT_NAMES):
        assert content is not None
        assert len(set(content[:SECTOR])) == len(set(content[SECTOR:])) == 1


def test_a_file_that_has_grown_may_hold_zeros_or_garbage(storage: CrashStorage) -> None:
    write(storage, "old", b"n" * 2000, 1000)
    grown = Survival(Names.ALL, Data.SIZE)
    assert contents(storage, "old", grown).keys() == {b"o" * 1000 + bytes(2000)}
    for content in contents(storage, "old", grown._replace(garbage=True)):
        assert content is not None
        assert len(content) == 3000
        assert content[:1024] == b"o" * 1000 + bytes(24)  # the rest of a sector that was there is zeros
        assert len(set(content[1024:])) > 200


def test_a_cut_may_be_undone_until_it_is_synced(storage: CrashStorage) -> None:
    file = storage.open_to_write(storage.folder / "old")
    file.truncate(600)
    assert contents(storage, "old").keys() == {
        b"o" * 1000,
        b"o" * 600,
        b"o" * 600 + bytes(400),
    }  # zeros to the sector's end
    file.sync()
    assert contents(storage, "old").keys() == {b"o" * 600}


def test_what_was_cut_never_comes_back_under_synced_bytes(storage: CrashStorage) -> None:
    file = storage.open_to_write(storage.folder / "old")
    file.truncate(0)
    file.write_at([b"n" * 500, b"n" * 200], 0)
    file.sync()
    file.truncate(600)
    assert contents(storage, "old").keys() == {b"n" * 700, b"n" * 600, b"n" * 600 + bytes(100)}


def test_a_rename_leaves_one_of_the_names(storage: CrashStorage) -> None:
    storage.rename(storage.folder / "old", storage.folder / "new")
    seen = Counter(tuple(image) for image in images(storage))
    assert seen.keys() == {("old",), ("new",)}
    storage.sync_folder(storage.folder)
    assert {tuple(image) for image in images(storage)} == {("new",)}


def test_a_file_that_replaces_another_is_one_or_the_other(storage: CrashStorage) -> None:
    storage.open_to_write(storage.folder / "old.tmp", create=True).write_at([b"n"], 0)
    storage.rename(storage.folder / "old.tmp", storage.folder / "old")
    found = contents(storage, "old", *(way for way in ALL_WAYS if not way.garbage))
    assert found.keys() == {b"o" * 1000, b"n", b"", b"\0"}  # without a sync it may also be nothing


def test_replace_file_is_all_or_nothing_and_lasts(storage: CrashStorage) -> None:
    seen = set()
    storage.replace_file(storage.folder / "old", b"new")
    for number, disk in storage.crash_points():
        for way in ALL_WAYS:
            for seed in range(20):
                image = disk.image(way, Random(seed))
                assert image["old"] in {b"o" * 1000, b"new"}
                seen.add((number == len(storage.journal), image["old"]))
    assert seen == {(False, b"o" * 1000), (False, b"new"), (True, b"new")}


def test_names_are_lost_last_first_unless_any_may_be(storage: CrashStorage) -> None:
    for name in "abc":
        write(storage, name, b"")
    in_order = {("old",), ("a", "old"), ("a", "b", "old"), ("a", "b", "c", "old")}
    assert {tuple(image) for image in images(storage, *POWER_CUTS)} == in_order
    assert len({tuple(image) for image in images(storage, *ANY_NAMES)}) == 8


def test_a_change_never_outlasts_what_it_builds_on(storage: CrashStorage) -> None:
    write(storage, "a", b"", sync=True)
    storage.rename(storage.folder / "a", storage.folder / "b")
    storage.remove(storage.folder / "b")
    assert {tuple(image) for image in images(storage)} == {("old",), ("a", "old"), ("b", "old")}


def test_a_folder_has_its_name_from_its_parent(storage: CrashStorage) -> None:
    storage.make_folder(storage.folder / "f")
    write(storage, "f/x", b"x", sync=True)
    storage.sync_folder(storage.folder / "f")
    assert {tuple(image) for image in images(storage)} == {("old",), ("f", "old", "f/x")}
    storage.sync_folder(storage.folder)
    assert {tuple(image) for image in images(storage)} == {("f", "old", "f/x")}


def test_a_renamed_folder_keeps_what_is_in_it(storage: CrashStorage) -> None:
    storage.make_folder(storage.folder / "f")
    write(storage, "f/x", b"x", sync=True)
    storage.sync_folder(storage.folder / "f")
    storage.sync_folder(storage.folder)
    storage.rename(storage.folder / "f", storage.folder / "g")
    write(storage, "g/y", b"y")
    found = {tuple(image) for image in images(storage)}
    assert {("f", "old", "f/x"), ("g", "old", "g/x"), ("f", "old", "f/x", "f/y"), ("g", "old", "g/x", "g/y")} == found


def test_a_folder_goes_after_all_that_is_in_it(storage: CrashStorage) -> None:
    storage.make_folder(storage.folder / "f")
    for name in ("f/x", "f/y"):
        write(storage, name, b"")
    storage.sync_folder(storage.folder / "f")
    storage.sync_folder(storage.folder)
    for name in ("f/x", "f/y"):
        storage.remove(storage.folder / name)
    storage.remove_folder(storage.folder / "f")
    found = {tuple(image) for image in images(storage)}
    assert {("old",), ("f", "old"), ("f", "old", "f/x"), ("f", "old", "f/y"), ("f", "old", "f/x", "f/y")} == found


def test_when_only_the_process_dies_all_stays(storage: CrashStorage) -> None:
    _work(storage)
    assert set(map(str, images(storage, PROCESS_DIED, count=1))) == {
        str(dict(sorted(read_image(storage.folder).items())))
    }


def test_each_operation_is_a_crash_point(storage: CrashStorage) -> None:
    _work(storage)
    points = [(number, disk.unsynced_count()) for number, disk in storage.crash_points()]
    assert [number for number, _ in points] == list(range(len(storage.journal) + 1))
    assert points[-1][1] == 0 < max(count for _, count in points)


@pytest.mark.parametrize("moment", Moment)
def test_it_stops_at_any_operation(tmp_path: Path, moment: Moment) -> None:
    """What the process had done when it stopped is what the journal of a whole run tells."""
    whole = _run(tmp_path / "whole", None)
    for number in range(len(whole.journal)):
        stopped = _run(tmp_path / str(number), (number, moment))
        done = number + (moment is Moment.AFTER)
        if moment is not Moment.HALFWAY:
            assert stopped.journal == whole.journal[:done]
        for action in _actions(stopped):
            with pytest.raises(PowerCut):
                action()
        left = next(iter(images(stopped, PROCESS_DIED, count=1)))
        assert dict(sorted(left.items())) == read_image(stopped.folder)


def test_a_write_is_torn_halfway(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    storage = CrashStorage(folder)
    storage.stop_at(1, Moment.HALFWAY)
    with pytest.raises(PowerCut):
        write(storage, "new", b"abcd")
    assert (folder / "new").read_bytes() == b"ab"


def test_another_program_goes_on_where_one_died(storage: CrashStorage) -> None:
    """What the first did not sync may still be lost."""
    storage.stop_at(2, Moment.AFTER)
    with pytest.raises(PowerCut):
        write(storage, "new", b"n", sync=True)
    storage.restart()
    assert storage.open(storage.folder / "new").read_at(10, 0) == b"n"
    write(storage, "other", b"m", sync=True)
    storage.sync_folder(storage.folder)
    assert contents(storage, "new", *POWER_CUTS).keys() == {b"n"}  # it was synced by the first
    write(storage, "new", b"x", 1)
    assert contents(storage, "new", POWER_CUTS[0]).keys() == {b"n"}


def test_an_error_is_not_taken_for_a_change(storage: CrashStorage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.open(storage.folder / "none")
    with pytest.raises(FileNotFoundError):
        storage.open_to_write(storage.folder / "none")
    with pytest.raises(FileNotFoundError):
        storage.rename(storage.folder / "none", storage.folder / "x")
    with pytest.raises(FileNotFoundError):
        storage.remove(storage.folder / "none")
    storage.make_folder(storage.folder / "f")
    with pytest.raises(FileExistsError):
        storage.make_folder(storage.folder / "f")
    assert len(storage.journal) == 1


def test_a_file_made_behind_its_back_is_not_there(storage: CrashStorage) -> None:
    """So that whoever passes by the storage is found out."""
    (storage.folder / "foreign").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="not known to the storage"):
        storage.open(storage.folder / "foreign")


def test_an_image_can_be_written_and_read(tmp_path: Path) -> None:
    image: Image = {"a": b"1", "f": None, "f/b": b"", "f/g": None}
    write_image(image, tmp_path / "image")
    assert read_image(tmp_path / "image") == image


def test_the_fast_storage_keeps_files(tmp_path: Path) -> None:
    FastStorage().replace_file(tmp_path / "a", b"1")
    assert FastStorage().open(tmp_path / "a").read_at(10, 0) == b"1"


def _actions(storage: CrashStorage) -> list[Callable[[], object]]:
    folder = storage.folder
    return [
        lambda: storage.make_folder(folder / "last"),
        lambda: storage.sync_folder(folder),
        lambda: storage.open_to_write(folder / "last file", create=True),
        lambda: storage.replace_file(folder / "last file", b""),
    ]


def _work(storage: CrashStorage) -> None:
    folder = storage.folder
    storage.make_folder(folder / "f")
    write(storage, "f/x", b"x" * 700)
    write(storage, "f/x", b"y" * 700, 600, sync=True)
    storage.rename(folder / "f/x", folder / "z")
    storage.sync_folder(folder / "f")
    storage.replace_file(folder / "checkpoint", b"0\n")
    storage.open_to_write(folder / "z").truncate(650)
    storage.open_to_write(folder / "z").sync()
    storage.remove_folder(folder / "f")
    storage.remove(folder / "z")
    storage.sync_folder(folder)


def _run(folder: Path, stop_at: tuple[int, Moment] | None) -> CrashStorage:
    folder.mkdir()
    storage = CrashStorage(folder)
    if stop_at is None:
        _work(storage)
    else:
        storage.stop_at(*stop_at)
        with pytest.raises(PowerCut):
            _work(storage)
    return storage
