"""Whatever is done to a batch, it is explained as far as it goes: in the terminal and as a page."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.exits import DAMAGE_FOUND, FINE
from octavo.inspect import Role, explain_file
from octavo.inspect.pages.explain_page import explain_page
from tests.golden import files


def spoiled(chance: random.Random) -> bytearray:
    """A batch that Kafka wrote, with bytes changed, cut out or put in."""
    data = bytearray(files.load(chance.choice(files.names())).data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0 | 1:
                data[at] = chance.randrange(256)
            case 2 if at:
                del data[at : at + chance.randrange(1, 20)]
            case _:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
    return data


@pytest.mark.parametrize("seed", range(8))
def test_any_damage_is_explained_byte_by_byte(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(seed)
    segment = tmp_path / "00000000000000000000.log"
    for _ in range(15):
        data = spoiled(chance)
        segment.write_bytes(data)
        position = chance.randrange(len(data))
        found = explain_file(segment, position=position, max_records=chance.choice([None, 1, 5]))
        leaves = [field for field in found.fields if not field.is_group and not field.inflated]
        assert b"".join(field.data for field in leaves) == data[found.position : found.position + found.size]
        assert all(field.meaning and (field.role is Role.GROUP) == field.is_group for field in found.fields)
        assert explain_page(found).endswith("</html>\n")
        assert main(["explain", str(segment), "--position", str(position)]) in (FINE, DAMAGE_FOUND)
        assert "Traceback" not in capsys.readouterr().err
