"""Who wants to know at once what changes in a data directory: `DirectoryObserver`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from octavo.log.log import Log


class DirectoryObserver(Protocol):
    """Is told of every change, whoever makes it, by the thread that makes it.

    That thread holds the lock of the log or of the directory. So these must return at once, and must not raise.
    """

    def log_changed(self, log: Log) -> None:
        """Readers may see more, or less: an append, a high watermark, a decided transaction, a new start or epoch."""

    def metadata_changing(self) -> None:
        """Metadata are about to change. If an exception such as an interrupt comes, this may be all that is told."""

    def metadata_changed(self) -> None:
        """A topic may have been created, changed or deleted; settings or quotas may have changed."""
