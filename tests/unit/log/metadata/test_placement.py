"""Where partitions go, where Kafka keeps its metadata in a folder of its own; and what a hand-over says then."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from octavo.cli import main
from octavo.errors import BadDirectory
from octavo.log import DataDirectory
from octavo.log.files.meta_properties import read_meta_properties
from octavo.log.metadata import MetadataStore, handover
from octavo.log.storage import DISK
from tests.unit.log.logs import make_batch
from tests.unit.log.metadata.forging import add_metadata, registered_broker


def directory_id(folder: Path) -> UUID:
    identity = read_meta_properties(DISK, folder)
    assert identity is not None
    assert identity.directory_id is not None
    return identity.directory_id


def make_pair(root: Path, *, names_its_folders: bool = True, topic: bool = True) -> tuple[Path, Path]:
    """Folders as a Kafka leaves them that runs with `log.dirs=c` and `metadata.log.dir=meta`."""
    c, meta = root / "c", root / "meta"
    DataDirectory.open([meta, c]).close()
    store = MetadataStore.open([meta, c], storage=DISK, read_only=False)
    if topic:
        store.create_topic("events", 1, {}, folders=[c])
    log_dir = store.identity[c].directory_id
    assert log_dir is not None
    add_metadata(meta, registered_broker(1, *([log_dir] if names_its_folders else [])))
    return c, meta


def folders_with(topic: str, *folders: Path) -> list[Path]:
    return [folder for folder in folders for _ in folder.glob(f"{topic}-[0-9]")]


@pytest.mark.parametrize("names_its_folders", [True, False])
@pytest.mark.parametrize("topic", [True, False])
def test_partitions_never_go_into_a_folder_that_holds_metadata_alone(
    tmp_path: Path, names_its_folders: bool, topic: bool
) -> None:
    c, meta = make_pair(tmp_path, names_its_folders=names_its_folders, topic=topic)
    for folders in ([c, meta], [meta, c]):
        name = f"new-{folders[0].name}"
        with DataDirectory.open(folders) as data:
            data.create_topic(name, partitions=3)
            data.log(name, 2).append(make_batch())
        assert folders_with(name, c, meta) == [c, c, c]
    assert [path.name for path in meta.glob("*-[0-9]")] == ["__cluster_metadata-0"]


def test_partitions_go_into_a_new_folder_too(tmp_path: Path) -> None:
    c, meta = make_pair(tmp_path)
    with DataDirectory.open([c, meta, tmp_path / "d"]) as data:
        data.create_topic("new", partitions=3)
    assert sorted(set(folders_with("new", c, meta, tmp_path / "d"))) == [c, tmp_path / "d"]


def test_where_there_is_one_folder_there_is_nothing_to_choose(tmp_path: Path) -> None:
    DataDirectory.open(tmp_path).close()
    placement = MetadataStore.open([tmp_path], storage=DISK, read_only=True).placement
    assert placement.choose(2, {tmp_path: 1}) == [directory_id(tmp_path)] * 2


def test_they_go_into_the_folder_of_the_metadata_where_kafka_has_it_among_its_log_dirs(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    DataDirectory.open([one, two]).close()
    store = MetadataStore.open([one, two], storage=DISK, read_only=False)
    ids = [store.identity[folder].directory_id for folder in (one, two)]
    add_metadata(one, registered_broker(1, *(each for each in ids if each is not None)))
    with DataDirectory.open([one, two]) as data:
        data.create_topic("new", partitions=4)
    assert folders_with("new", one, two) == [one, one, two, two]


def test_a_folder_that_holds_metadata_alone_takes_no_topic_by_itself(tmp_path: Path) -> None:
    _, meta = make_pair(tmp_path)
    with DataDirectory.open(meta) as data:
        assert data.partitions() == []  # those of a folder that was not given are not made here
        with pytest.raises(BadDirectory, match=r"give those of log\.dirs as well"):
            data.create_topic("new")
        assert "new" not in data.topics
    assert [path.name for path in meta.glob("*-[0-9]")] == ["__cluster_metadata-0"]


def test_partitions_on_a_disk_that_was_not_given_are_not_made_on_another(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    with DataDirectory.open(folders) as data:
        data.create_topic("events", partitions=2)
        data.log("events", 0).append(make_batch())
        data.log("events", 1).append(make_batch())
    with DataDirectory.open(folders[0]) as data:
        assert len(data.partitions()) == 1
    with DataDirectory.open(folders) as data:
        assert [log.end_offset for log in data.logs] == [1, 1]


def test_adopted_partitions_have_their_gaps_filled_beside_them(tmp_path: Path) -> None:
    c, meta = make_pair(tmp_path)
    DataDirectory.open([c, meta]).close()
    shutil.copytree(c / "events-0", c / "found-3")
    (c / "found-3" / "partition.metadata").unlink()
    with DataDirectory.open([c, meta]) as data:
        data.set_config("found", {"retention.ms": "-1"})
    assert folders_with("found", c, meta) == [c] * 4


def test_a_handover_names_no_folder_of_metadata_among_the_log_dirs(tmp_path: Path) -> None:
    c, meta = make_pair(tmp_path)
    done = handover([c, meta])
    assert (done.settings["log.dirs"], done.settings["metadata.log.dir"]) == (str(c), str(meta))
    assert done.differences == ()


def test_a_handover_says_where_its_lines_are_not_what_kafka_was_running_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    c, meta = make_pair(tmp_path)
    log_dir = directory_id(c)
    add_metadata(meta, registered_broker(1, log_dir, host="broker1.example", port=9094))
    DataDirectory.open([c, meta, tmp_path / "new"]).close()
    done = handover([c, meta, tmp_path / "new"])
    assert done.differences == (
        ("log.dirs", f"{tmp_path / 'new'} was not among them"),
        ("listeners", "clients were told PLAINTEXT://broker1.example:9094"),
    )
    main(["handover", str(c), str(meta), str(tmp_path / "new")])
    told = capsys.readouterr().out
    assert "not what Kafka was running with" in told
    assert "listeners: clients were told PLAINTEXT://broker1.example:9094" in told


def test_a_handover_misses_a_folder_that_kafka_had(tmp_path: Path) -> None:
    c, meta = make_pair(tmp_path)
    [difference, *_] = handover([meta]).differences
    assert difference.name == "log.dirs"
    assert difference.before.startswith("the folder with directory.id=")
    assert c.is_dir()
