"""Golden files: `<name>.bin` as Kafka wrote it, `<name>.json` with what Kafka reads in it (bytes in hex)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.kafka.answers import ReadBatch, ReadRecord

FOLDER: Final = Path(__file__).resolve().parent / "files"


@dataclass(frozen=True, slots=True)
class Golden:
    """One golden file."""

    name: str
    about: str
    written_by: str  # "Apache Kafka 4.4.0"
    data: bytes
    batches: list[ReadBatch]

    @property
    def records(self) -> list[ReadRecord]:
        return [record for batch in self.batches for record in batch.records]


def names() -> list[str]:
    """The names of all golden files, for `pytest.mark.parametrize`."""
    return sorted(path.stem for path in FOLDER.glob("*.bin"))


def load(name: str) -> Golden:
    """The golden file called `name`."""
    told = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    data = (FOLDER / f"{name}.bin").read_bytes()
    return Golden(name, told["about"], told["written_by"], data, [_batch(batch) for batch in told["batches"]])


def store(golden: Golden) -> None:
    """Writes both files."""
    batches = ",\n".join(_told(batch) for batch in golden.batches)
    head = _line({"about": golden.about, "written_by": golden.written_by, "batches": []})
    told = f"{head.removesuffix(']}')}\n{batches}\n]}}\n"
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{golden.name}.bin").write_bytes(golden.data)
    (FOLDER / f"{golden.name}.json").write_text(told, "utf-8")


def _told(batch: ReadBatch) -> str:
    """A line for the batch and one for each record: short, and a change shows as what it is."""
    assert batch.fault is None, batch.fault
    fields = dataclasses.asdict(batch)
    del fields["fault"]
    fields["records"] = []
    records = ",".join(f"\n   {_line(_told_record(record))}" for record in batch.records)
    return " " + _line(fields).removesuffix("]}") + records + "]}"


def _told_record(record: ReadRecord) -> dict[str, Any]:
    fields = dataclasses.asdict(record)
    fields["key"] = _hex(record.key)
    fields["value"] = _hex(record.value)
    fields["headers"] = [[key, _hex(value)] for key, value in record.headers]
    if record.control_type is None:
        del fields["control_type"], fields["control"]
    return fields


def _line(told: Any) -> str:
    return json.dumps(told, ensure_ascii=False)


def _batch(told: dict[str, Any]) -> ReadBatch:
    return ReadBatch(**{**told, "records": [_record(record) for record in told["records"]]}, fault=None)


def _record(told: dict[str, Any]) -> ReadRecord:
    told["key"] = _bytes(told["key"])
    told["value"] = _bytes(told["value"])
    told["headers"] = [(key, _bytes(value)) for key, value in told["headers"]]
    return ReadRecord(**{"control_type": None, "control": None, **told})


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
