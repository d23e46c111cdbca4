"""Names of columns that a table cannot have."""

from __future__ import annotations

import pytest

from octavo.errors import InvalidInput
from octavo.spark.tables.columns import TableColumns
from octavo.values import value_decoder


def test_a_prefix_helps_against_names_of_our_columns() -> None:
    decoder = value_decoder("json", schema="Offset BIGINT")
    with pytest.raises(InvalidInput, match=r"the value has a field 'Offset', .*: give a prefix"):
        TableColumns(decoder=decoder)
    assert "v_Offset" in TableColumns(decoder=decoder, prefix="v_").table.names


@pytest.mark.parametrize("prefix", ["", "v_"])
def test_a_prefix_does_not_help_against_names_that_differ_only_in_case(prefix: str) -> None:
    decoder = value_decoder("json", schema="A BIGINT, b BIGINT, a BIGINT")
    told = f"fields '{prefix}A' and '{prefix}a', which tables do not tell apart: give a schema with only one of them"
    with pytest.raises(InvalidInput, match=told):
        TableColumns(decoder=decoder, prefix=prefix)
