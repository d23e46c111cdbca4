"""Delta and Iceberg tables: what a commit adds, and that of two only one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from octavo.errors import BadTable, ExportConflict, InvalidInput, TableError
from octavo.log.names import TopicPartition
from octavo.spark.tables.progress import Progress, Reached
from octavo.spark.tables.written import WrittenFile
from tests.unit.spark.tables.lakes import (
    DAY,
    FORMATS,
    ID,
    NOTES,
    ORDERS,
    OTHER_ID,
    SCHEMA,
    created,
    export,
    open_lake,
    reached,
    read_table,
    rows,
    table_offsets,
    write,
    write_rows,
)


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    """The format."""
    return str(request.param)


def data_files(folder: Path) -> set[str]:
    """Return the data files that lie there, whether the table has them or not."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def test_a_new_table_has_the_columns_and_notes_and_no_rows(tmp_path: Path, kind: str) -> None:
    with open_lake(kind, tmp_path / "table") as target:
        assert target.schema() is None
        assert target.progress() == Progress()
        assert not (tmp_path / "table").exists()
        target.create(SCHEMA, NOTES)
    with open_lake(kind, tmp_path / "table") as target:
        assert target.schema() == SCHEMA
        assert target.properties() == NOTES
        assert target.progress() == Progress()
        assert list(target.files()) == []
        assert table_offsets(target) == []


def test_rows_and_progress_are_added_together(tmp_path: Path, kind: str) -> None:
    other = TopicPartition("other.topic_1-x", 12)
    with created(kind, tmp_path) as target:
        after = Progress({ORDERS: Reached(ID, 9), other: Reached(None, 1 << 62)})
        place = target.begin(Progress(), after)
        expected = [
            (rows(ORDERS, range(5), DAY), ORDERS, DAY),
            (rows(ORDERS, [5, 8], None), ORDERS, None),
            (rows(other, [(1 << 62) - 1], DAY + 1), other, DAY + 1),
        ]
        files = [write_rows(place, *file) for file in expected]
        assert table_offsets(target) == []
        target.commit(files, Progress(), after)
        assert target.progress() == after
    with open_lake(kind, tmp_path) as target:
        assert target.progress() == after
        assert sorted(target.files()) == sorted(files)
        stored = read_table(target).select(SCHEMA.names).sort_by("value").to_pylist()
        assert stored == pa.concat_tables([table for table, *_ in expected]).sort_by("value").to_pylist()


def test_an_export_goes_on_where_the_last_one_ended(tmp_path: Path, kind: str) -> None:
    created(kind, tmp_path).close()
    for end in range(3, 36, 3):  # more commits than Delta has between two checkpoints
        with open_lake(kind, tmp_path) as target:
            export(target, end)
    with open_lake(kind, tmp_path) as target:
        assert target.progress() == reached(33)
        assert table_offsets(target) == list(range(33))
        assert len(list(target.files())) == 11


def test_progress_without_rows_is_kept(tmp_path: Path, kind: str) -> None:
    with created(kind, tmp_path) as target:
        for end in (4, 7):
            before = target.progress()
            target.begin(before, reached(end))
            target.commit([], before, reached(end))
        assert target.progress() == reached(7)
        assert table_offsets(target) == []


def test_of_two_exports_at_once_one_is_committed(tmp_path: Path, kind: str) -> None:
    with created(kind, tmp_path) as first, open_lake(kind, tmp_path) as second:
        export(first, 4)
        before = second.progress()
        places = [target.begin(before, reached(9)) for target in (first, second)]
        ours, theirs = ([write(place, range(4, 9))] for place in places)
        first.commit(ours, before, reached(9))
        with pytest.raises(ExportConflict, match="another export"):
            second.commit(theirs, before, reached(9))
        assert table_offsets(second) == list(range(9))
        assert theirs[0].path not in data_files(tmp_path)
        assert ours[0].path in data_files(tmp_path)
        export(second, 11)  # it can go on
        assert table_offsets(first) == list(range(11))


@pytest.mark.parametrize("faster_has_rows", [False, True])
def test_an_export_without_rows_conflicts_as_others_do(tmp_path: Path, kind: str, faster_has_rows: bool) -> None:
    with created(kind, tmp_path) as first, open_lake(kind, tmp_path) as second:
        export(first, 4)
        before = second.progress()
        place = second.begin(before, reached(9))
        with_rows = [write(place, range(4, 9))]
        faster, slower = (with_rows, []) if faster_has_rows else ([], with_rows)
        # `commit` looks at the table before it commits: go behind that, where only the library notices
        first.commit(faster, before, reached(9 if faster_has_rows else 6))
        with pytest.raises(Exception, match=r"ommit|branch main"):
            second._commit(slower, before, reached(6 if faster_has_rows else 9))
        assert second.progress() == reached(9 if faster_has_rows else 6)
        assert table_offsets(second) == list(range(9 if faster_has_rows else 4))


def test_a_commit_that_others_overtook_after_it_looked_is_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with created(kind, tmp_path) as first, open_lake(kind, tmp_path) as second:
        before = second.progress()
        place = second.begin(before, reached(5))
        files = [write(place, range(5))]
        sync = second._sync_names

        def overtake(files: list[WrittenFile]) -> None:
            sync(files)
            export(first, 3)

        monkeypatch.setattr(second, "_sync_names", overtake)
        with pytest.raises(ExportConflict):
            second.commit(files, before, reached(5))
        assert second.progress() == reached(3)
        assert table_offsets(second) == [0, 1, 2]
        assert len(data_files(tmp_path)) == 1


def test_a_round_whose_start_is_passed_does_not_begin(tmp_path: Path, kind: str) -> None:
    with created(kind, tmp_path) as first, open_lake(kind, tmp_path) as second:
        before = second.progress()
        export(first, 3)
        with pytest.raises(ExportConflict):
            second.begin(before, reached(5))


@pytest.mark.parametrize("own", [True, False])
def test_an_iceberg_table_may_have_any_name_in_any_catalog(tmp_path: Path, own: bool) -> None:
    options = {"table": "db.events"} if own else {"name": "other", "uri": f"sqlite:///{tmp_path}/elsewhere.db"}
    table = tmp_path / "table"
    with created("iceberg", table, **options) as target:
        export(target, 3)
    with open_lake("iceberg", table, **options) as target:
        assert target.progress() == reached(3)
    with pytest.raises(InvalidInput, match=r"is named NAMESPACE\.TABLE"):
        open_lake("iceberg", table, table="events")
    with pytest.raises(BadTable, match="in the catalog is at"):
        open_lake("iceberg", tmp_path / "another", **{"uri": f"sqlite:///{table}/catalog.db", **options})


def test_two_who_create_a_table_do_not_both_do_so(tmp_path: Path, kind: str) -> None:
    first, second = (open_lake(kind, tmp_path / "table") for _ in range(2))
    with first, second:
        first.create(SCHEMA, NOTES)
        with pytest.raises(ExportConflict):
            second.create(SCHEMA, {})
    with open_lake(kind, tmp_path / "table") as target:
        assert target.properties() == NOTES


def test_a_topic_that_was_created_again_begins_anew(tmp_path: Path, kind: str) -> None:
    with created(kind, tmp_path) as target:
        export(target, 5)
        for generation, topic_id in enumerate((OTHER_ID, ID, None, OTHER_ID), 2):
            before = target.progress()
            place = target.begin(before, reached(2, topic_id))
            target.commit([write(place, range(2))], before, reached(2, topic_id))
            assert target.progress() == reached(2, topic_id)
            assert table_offsets(target).count(0) == generation
    with open_lake(kind, tmp_path) as target:
        assert target.progress() == reached(2, OTHER_ID)


def test_columns_are_added_before_rows_that_have_them(tmp_path: Path, kind: str) -> None:
    typed = pa.field("amount", pa.int64())
    nested = pa.field("lines", pa.list_(pa.struct([("name", pa.string()), ("at", pa.timestamp("us", "UTC"))])))
    reason = pa.field("parse_error", pa.string())
    wide = pa.schema([*SCHEMA, typed, nested, reason])
    with created(kind, tmp_path) as target:
        export(target, 3)
        target.add_columns(wide, {"values": "json"})
        target.add_columns(wide, {"values": "json"})
        assert target.schema() == wide
        assert target.properties() == {"values": "json"}
        place = target.begin(target.progress(), reached(5))
        table = rows(ORDERS, [3, 4], DAY)
        for field, values in ((typed, [7, None]), (nested, [[{"name": "x", "at": 5}], None]), (reason, [None, "bad"])):
            table = table.append_column(field, pa.array(values, field.type))
        file = write_rows(place, table, ORDERS, DAY)._replace(rejected=1)
        target.commit([file], target.progress(), reached(5))
    with open_lake(kind, tmp_path) as target:
        stored = read_table(target).sort_by("offset")
        assert stored["amount"].to_pylist() == [None, None, None, 7, None]
        assert stored["lines"].combine_chunks().is_valid().to_pylist() == [False, False, False, True, False]
        assert sorted(file.rejected for file in target.files()) == [0, 1]


def test_a_column_that_would_be_stored_as_something_else_is_refused(tmp_path: Path, kind: str) -> None:
    wide = pa.schema([*SCHEMA, pa.field("count", pa.uint32())])
    with (
        open_lake(kind, tmp_path / "table") as target,
        pytest.raises(InvalidInput, match=r"the column count .* uint32"),
    ):
        target.create(wide, NOTES)
    with created(kind, tmp_path / "other") as target:
        with pytest.raises(InvalidInput, match=r"the column count .* uint32"):
            target.add_columns(wide, NOTES)
        assert target.schema() == SCHEMA


@pytest.mark.parametrize("kind_of_column", ["number", "nested"])
def test_small_integers_are_stored(tmp_path: Path, kind: str, kind_of_column: str) -> None:
    """Iceberg has no integers with 8 or 16 bits, and stores them with 32."""
    inner = pa.list_(pa.field("element", pa.struct([("a", pa.int8()), ("b", pa.map_(pa.string(), pa.int16()))])))
    values = [-7, None] if kind_of_column == "number" else [[{"a": -7, "b": [("x", 300)]}], []]
    field = pa.field("magic", pa.int16() if kind_of_column == "number" else inner)
    with open_lake(kind, tmp_path) as target:
        target.create(pa.schema([*SCHEMA, field]), NOTES)
        place = target.begin(Progress(), reached(2))
        table = rows(ORDERS, [0, 1], DAY).append_column(field, pa.array(values, field.type))
        target.commit([write_rows(place, table, ORDERS, DAY)], Progress(), reached(2))
        stored = read_table(target).sort_by("offset")["magic"].to_pylist()
        assert str(stored).replace("{'key': 'x', 'value': 300}", "('x', 300)") == str(values)


def test_files_are_merged_in_one_commit(tmp_path: Path, kind: str) -> None:
    with created(kind, tmp_path) as target, open_lake(kind, tmp_path) as exporter:
        for end in (3, 6, 9):
            export(target, end)
        files = sorted(target.files())
        progress = target.progress()
        place = target.begin(progress, progress)
        merged = write(place, range(6))
        target.replace(files[:2], [merged])
        assert sorted(target.files()) == [merged, files[2]]
        assert table_offsets(target) == list(range(9))
        assert target.progress() == progress
        export(exporter, 12)
        late = write(place, range(6))
        with pytest.raises(ExportConflict, match="no longer in the table"):
            target.replace(files[:2], [late])
        assert late.path not in data_files(tmp_path)
        assert table_offsets(target) == list(range(12))


def test_of_two_merges_at_once_one_is_committed(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with created(kind, tmp_path) as first, open_lake(kind, tmp_path) as second:
        for end in (3, 6):
            export(first, end)
        files, progress = sorted(first.files()), first.progress()
        ours, theirs = (write(target.begin(progress, progress), range(6)) for target in (first, second))
        sync = second._sync_names

        def overtake(added: list[WrittenFile]) -> None:
            sync(added)
            first.replace(files, [ours])

        monkeypatch.setattr(second, "_sync_names", overtake)
        with pytest.raises(ExportConflict):
            second.replace(files, [theirs])
        assert table_offsets(second) == list(range(6))
        assert data_files(tmp_path) == {*(file.path for file in files), ours.path}


def test_a_table_that_no_export_made_is_left_alone(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "precious.txt").write_text("mine")
    with pytest.raises(BadTable, match="something else"):
        open_lake(kind, folder)
    assert [path.name for path in folder.iterdir()] == ["precious.txt"]
    foreign = tmp_path / "foreign"
    if kind == "delta":
        DeltaTable.create(str(foreign), SCHEMA)
    else:
        foreign.mkdir()
        catalog = load_catalog("octavo", uri=f"sqlite:///{foreign}/catalog.db")
        catalog.create_namespace("octavo")
        catalog.create_table("octavo.records", SCHEMA, location=f"file://{foreign}")
        catalog.close()
    with pytest.raises(BadTable, match=f"there is a {kind} table that no export has made"):
        open_lake(kind, foreign)
    with pytest.raises(InvalidInput, match="cannot be at a path with"):
        open_lake(kind, tmp_path / "100%")


def test_what_a_library_says_is_told_in_one_sentence(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no luck\nwith a second line")

    with created(kind, tmp_path) as target:
        files = [write(target.begin(Progress(), reached(3)), range(3))]
        with monkeypatch.context() as patch:
            patch.setattr(target, "_commit", fail)
            with pytest.raises(TableError, match=r"its library says: no luck$"):
                target.commit(files, Progress(), reached(3))
        target.commit(files, Progress(), reached(3))  # nobody knew that it was not committed, so they are still there
        assert table_offsets(target) == [0, 1, 2]


def test_a_commit_whose_answer_got_lost_is_taken_for_done(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with created(kind, tmp_path) as target:
        files = [write(target.begin(Progress(), reached(3)), range(3))]
        commit = target._commit

        def lose_the_answer(*given: Any) -> None:
            commit(*given)
            raise TimeoutError("no answer")

        monkeypatch.setattr(target, "_commit", lose_the_answer)
        target.commit(files, Progress(), reached(3))
        assert target.progress() == reached(3)
        assert table_offsets(target) == [0, 1, 2]


def test_a_missing_library_is_told_in_one_sentence(kind: str) -> None:
    library = {"delta": "deltalake", "iceberg": "pyiceberg"}[kind]
    program = f"""
import sys
sys.modules["{library}"] = None
from octavo.errors import InvalidInput
from octavo.spark.tables.formats import open_target
try:
    open_target("/nowhere", "{kind}", {{}})
except InvalidInput as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"need the package {library}: pip install 'octavo[tables]'" in done.stdout, done.stderr


def test_libraries_are_imported_when_they_are_used() -> None:
    program = """
import sys
import octavo.cli, octavo.spark.tables.export, octavo.spark.tables.formats
print([name for name in ("deltalake", "pyiceberg", "polars") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
