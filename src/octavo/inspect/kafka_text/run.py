"""What all files that are printed in one run share."""

from __future__ import annotations

from typing import NamedTuple

from octavo.inspect.kafka_text.options import TextOptions
from octavo.inspect.kafka_text.output import Output
from octavo.inspect.kafka_text.reports import Reports


class Run(NamedTuple):
    """The options, the streams, and what is reported at the end."""

    options: TextOptions
    output: Output
    reports: Reports
