"""Note which topics an import creates, until its commit follows: `CreatedTopics`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self
from uuid import UUID

from octavo.errors import BadDirectory, InvalidInput
from octavo.log import StagingArea
from octavo.log.files.meta_properties import read_uuid, write_uuid
from octavo.log.files.small_file import read_small_file
from octavo.log.storage import DISK

_MAX_SIZE: Final = 1 << 30


class CreatedTopics(NamedTuple):
    """A file among the staged ones of a data directory that names the topics, with their ids."""

    path: Path

    @classmethod
    def of(cls, area: StagingArea) -> Self:
        """Return the note for the data directory of a staging area. Nothing is written yet."""
        return cls(area.folder / f"imported-topics-{area.directory}.json")

    def write(self, topics: Mapping[str, UUID]) -> None:
        """Note the topics. They are on the disk when this returns."""
        text = json.dumps({name: write_uuid(topic_id) for name, topic_id in topics.items()})
        DISK.replace_file(self.path, text.encode())

    def read(self) -> dict[str, UUID]:
        """Return the topics; none if nothing is noted. Raises `BadDirectory`."""
        try:
            found = json.loads(read_small_file(DISK, self.path, _MAX_SIZE))
            return {name: read_uuid(text) for name, text in found.items()}
        except FileNotFoundError:
            return {}
        except (AttributeError, TypeError, ValueError, InvalidInput):
            raise BadDirectory(self.path, "this is not what an import notes about topics: remove it") from None

    def remove(self) -> None:
        """Remove the note."""
        with contextlib.suppress(FileNotFoundError):
            DISK.remove(self.path)
