"""Read the keys of all kinds of records of `__consumer_offsets`, and find key classes by their number.

`read_value_of` of `octavo.schemas.versioned` reads the value for a key; `write_key` and `write_value` write both.
"""

from __future__ import annotations

from typing import Any, Final

from octavo.schemas.consumer_offsets import classic_groups, consumer_groups, offsets, share_groups, streams_groups
from octavo.schemas.versioned import CoordinatorKey, UnknownKey, key_kinds, read_any_key

KINDS: Final = key_kinds(classic_groups, consumer_groups, offsets, share_groups, streams_groups)


def read_group_key(key: bytes) -> CoordinatorKey[Any] | UnknownKey:
    """Read a key of `__consumer_offsets`. Raises a `FormatError` if it is malformed."""
    return read_any_key(KINDS, key)
