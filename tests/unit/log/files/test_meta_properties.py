"""Who a directory belongs to."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from octavo.errors import Corrupt, InvalidInput
from octavo.log.files import partition_metadata
from octavo.log.files.meta_properties import (
    METADATA_TOPIC_ID,
    ZERO_ID,
    MetaProperties,
    random_uuid,
    read_meta_properties,
    read_uuid,
    write_meta_properties,
    write_uuid,
)
from octavo.log.storage import DISK

SOME_ID = uuid.UUID("e10cf6c2-61a6-43dc-bc95-2cd8c0f1ba2f")


def test_an_id_is_22_characters() -> None:
    assert write_uuid(SOME_ID) == "4Qz2wmGmQ9y8lSzYwPG6Lw"
    assert read_uuid("4Qz2wmGmQ9y8lSzYwPG6Lw") == SOME_ID
    assert read_uuid("4Qz2wmGmQ9y8lSzYwPG6Lw==") == SOME_ID
    assert write_uuid(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    "text", ["", "4Qz2wmGmQ9y8lSzYwPG6L", "4Qz2wmGmQ9y8lSzYwPG6Lww", "4Qz2wmGmQ9y8lSzYwPG6L+", str(SOME_ID)]
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no id"):
        read_uuid(text)


def test_new_ids_are_no_options_and_not_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    dash = uuid.UUID(bytes=b"\xf8" + bytes(15))
    assert write_uuid(dash).startswith("-")
    drawn = iter([ZERO_ID, METADATA_TOPIC_ID, dash, SOME_ID])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    assert random_uuid() == SOME_ID


@pytest.mark.parametrize(
    "properties",
    [
        MetaProperties(cluster_id="c", node_id=1, directory_id=SOME_ID),
        MetaProperties(cluster_id="some=thing: else", node_id=0),
        MetaProperties(version=0),
        MetaProperties(version=0, cluster_id="c", node_id=7),
    ],
)
def test_meta_properties_are_read_as_they_were_written(tmp_path: Path, properties: MetaProperties) -> None:
    assert read_meta_properties(DISK, tmp_path) is None
    write_meta_properties(DISK, tmp_path, properties)
    assert read_meta_properties(DISK, tmp_path) == properties


def test_meta_properties_look_as_kafkas(tmp_path: Path) -> None:
    write_meta_properties(DISK, tmp_path, MetaProperties(cluster_id="c", node_id=1, directory_id=SOME_ID))
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert lines[0] == "#"
    assert lines[1].startswith("#")
    assert lines[2:] == ["cluster.id=c", f"directory.id={write_uuid(SOME_ID)}", "node.id=1", "version=1"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("version=2\nnode.id=1\ncluster.id=c", "version 2 of meta.properties is unknown"),
        ("version=one", "version is 'one'"),
        ("version=1\ncluster.id=c", "need both cluster.id and node.id"),
        ("version=1\nnode.id=1", "need both"),
        ("version=1\nnode.id=1.5\ncluster.id=c", "node.id is '1.5'"),
        ("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=x", "'x' is no id"),
        ("version=\\u", "four hexadecimal digits"),
    ],
)
def test_bad_meta_properties_are_named(tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(text)
    with pytest.raises(Corrupt, match=rule) as damage:
        read_meta_properties(DISK, tmp_path)
    assert str(path) in str(damage.value)


def test_a_partition_says_which_topic_it_is_of(tmp_path: Path) -> None:
    assert partition_metadata.read_topic_id(DISK, tmp_path) is None
    partition_metadata.write_topic_id(DISK, tmp_path, SOME_ID)
    assert (tmp_path / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: 4Qz2wmGmQ9y8lSzYwPG6Lw"
    assert partition_metadata.read_topic_id(DISK, tmp_path) == SOME_ID
    (tmp_path / "partition.metadata").write_text("version: 7\r\ntopic_id: 4Qz2wmGmQ9y8lSzYwPG6Lw\nmore: than that\n")
    assert partition_metadata.read_topic_id(DISK, tmp_path) == SOME_ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 0\n",
        "version: 0\ntopic_id: ",
        "version: -1\ntopic_id: 4Qz2wmGmQ9y8lSzYwPG6Lw",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        "version: 0\ntopic_id: 4Qz2wmGmQ9y8lSzYwPG6",
        "x" * 5000,
    ],
)
def test_a_partition_that_does_not_say_so_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "partition.metadata"
    path.write_text(text)
    with pytest.raises(Corrupt) as damage:
        partition_metadata.read_topic_id(DISK, tmp_path)
    assert str(path) in str(damage.value)


def test_no_topic_has_an_id_of_zeros(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        partition_metadata.write_topic_id(DISK, tmp_path, ZERO_ID)
