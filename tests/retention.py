"""Settings for brokers of tests whose records have times of long ago: `KEPT_FOR_NOW`."""

from __future__ import annotations

from typing import Final

# Half a minute after its start a broker deletes what is older than a week. On a busy machine a test may still run then.
KEPT_FOR_NOW: Final = {"log.initial.task.delay.ms": "3600000"}
