"""The source with `valueFormat`, and with filters of keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import InvalidInput
from octavo.log import DataDirectory
from octavo.records import BatchBuilder, Codec
from tests.plugin import install
from tests.unit.spark.queries import plan, read, read_tasks

SCHEMA = "n BIGINT, name STRING, tags ARRAY<STRING>"


def write(folder: Path, *, batches: int = 40) -> None:
    """A topic of JSON: a few values are broken, and some are null. So are some keys."""
    with DataDirectory.open(folder) as data:
        data.create_topic("events", 2, {"internal.segment.bytes": "4096", "retention.ms": "-1"})
        for partition in range(2):
            for number in range(batches):
                builder = BatchBuilder(codec=list(Codec)[number % 5])
                for each in range(number * 5, number * 5 + 5):
                    key = None if each % 7 == 0 else b"%s-%d" % (b"ab"[each % 2 :][:1], each % 10)
                    value: bytes | None = b'{"n":%d,"name":"x\\u00e4","tags":["a",null]}' % each
                    if each % 11 == 0:
                        value = None
                    elif each % 13 == 0:
                        value = b'{"n":"%d","name":"y"}' % each
                    builder.append(key, value, timestamp_ms=1_700_000_000_000 + each)
                data.log("events", partition).append(builder.build())


def test_typed_columns_take_the_place_of_the_value(tmp_path: Path) -> None:
    write(tmp_path)
    rows = read(tmp_path, valueFormat="json", valueSchema=SCHEMA)
    assert list(rows[0]) == [
        *("key", "topic", "partition", "offset", "timestamp", "timestampType"),
        *("n", "name", "tags", "parse_error"),
    ]
    assert len(rows) == 400
    for row in rows:
        number = row["offset"]
        if number % 11 == 0:
            expected: tuple[object, ...] = (None, None, None, False)
        elif number % 13 == 0:
            expected = (None, "y", None, True)
        else:
            expected = (number, "xä", ["a", None], False)
        assert (row["n"], row["name"], row["tags"], row["parse_error"] is not None) == expected


def test_columns_can_be_chosen_among_typed_and_other_ones(tmp_path: Path) -> None:
    write(tmp_path)
    options = {"valueFormat": "json", "valueSchema": SCHEMA}
    rows = read(tmp_path, columns="name,offset,value,N", includeHeaders="true", **options)
    assert list(rows[0]) == ["name", "offset", "value", "n"]
    assert rows[1]["value"].startswith(b'{"n":1')
    assert list(read(tmp_path, columns="offset", **options)[0]) == ["offset"]
    with pytest.raises(InvalidInput, match="is tags meant"):
        plan(tmp_path, columns="tag", **options)


def test_a_prefix_settles_a_clash_of_names(tmp_path: Path) -> None:
    write(tmp_path)
    options = {"valueFormat": "json", "valueSchema": "Offset BIGINT, n INT"}
    with pytest.raises(InvalidInput, match="the value has a field 'Offset', and there is a column of this name"):
        plan(tmp_path, **options)
    rows = read(tmp_path, valuePrefix="v_", columns="v_n,offset", **options)
    assert rows[1] == {"v_n": 1, "offset": 1}


def test_a_schema_can_be_in_a_file(tmp_path: Path) -> None:
    write(tmp_path / "data")
    file = tmp_path / "schema.ddl"
    file.write_text("n SMALLINT")
    rows = read(tmp_path / "data", valueFormat="json", valueSchemaFile=str(file), columns="n")
    assert rows[2] == {"n": 2}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"valueSchema": "n INT"}, "valueSchema means nothing without valueFormat"),
        ({"valueFormat": "xml"}, "valueFormat cannot be 'xml'"),
        ({"valueFormat": "json"}, "values of the format json need schema"),
        ({"valueFormat": "json", "valueSchema": "n"}, "the schema is no DDL"),
        ({"valueFormat": "json", "valueSchemaFile": "/nowhere"}, "the schema /nowhere cannot be read"),
        ({"valueFormat": "json", "valueSchema": "n INT", "valueSchemaFile": "/nowhere"}, "give one of them"),
        ({"valueFormat": "string", "valueMessage": "x"}, "values of the format string take no message"),
        ({"keyEquals": "hex:xyz"}, "it is no hex"),
        ({"keyPrefix": "base64:???"}, "it is no base64"),
        ({"keyPrefixes": "a"}, "is keyPrefix meant"),
    ],
)
def test_wrong_options_are_refused_at_load(tmp_path: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        plan(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "equals", "prefix"),
    [
        ({"keyEquals": "a-2"}, b"a-2", b""),
        ({"keyEquals": "hex:612d32"}, b"a-2", b""),
        ({"keyPrefix": "b"}, None, b"b"),
        ({"keyPrefix": "base64:Yi0="}, None, b"b-"),
        ({"keyPrefix": ""}, None, b""),
        ({"keyEquals": "b-3", "keyPrefix": "a"}, b"b-3", b"a"),
        ({"keyEquals": "text:a-2"}, b"a-2", b""),
        ({"keyEquals": ""}, b"", b""),
    ],
)
def test_a_filter_leaves_the_rows_with_such_a_key(
    tmp_path: Path, options: dict[str, str], equals: bytes | None, prefix: bytes
) -> None:
    write(tmp_path)
    expected = [
        row
        for row in read(tmp_path)
        if row["key"] is not None and row["key"].startswith(prefix) and (equals is None or row["key"] == equals)
    ]
    assert read(tmp_path, **options) == expected
    assert read(tmp_path, columns="offset", **options) == [{"offset": row["offset"]} for row in expected]


def test_batches_have_sparks_schema_with_a_filter_and_types(tmp_path: Path) -> None:
    write(tmp_path)
    reader, tasks, schema = plan(
        tmp_path, valueFormat="json", valueSchema=SCHEMA, keyPrefix="a", columns="n,partition", minPartitions="7"
    )
    table = read_tasks(reader, tasks, schema)
    assert 0 < table.num_rows < 400
    assert table["n"].null_count < table.num_rows


def test_a_format_of_another_package_has_columns_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages, "octavo_test_length")
    monkeypatch.syspath_prepend(packages)
    write(tmp_path / "data", batches=2)
    rows = read(tmp_path / "data", valueFormat="length", valueMessage="size", columns="offset,size,parse_error")
    assert {row["size"] for row in rows if row["offset"] in (1, 2)} == {
        len(b'{"n":1,"name":"x\\u00e4","tags":["a",null]}')
    }
    with pytest.raises(InvalidInput, match="length need message"):
        read(tmp_path / "data", valueFormat="length")
