"""Write the list of settings in docs/broker-settings.md: `python -m tests.unit.broker.settings_page`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from octavo.broker.config import HONOURED
from octavo.broker.kafka_settings import KAFKA_SETTINGS, PREFIXES
from octavo.broker.refused_settings import REFUSED, REMOVED, may_be_refused

PAGE = Path(__file__).parents[3] / "docs" / "broker-settings.md"

_TEXT = """\
# Settings of the broker

What becomes of each setting that a broker of Apache Kafka 4.3 has, if it is in the file that `octavo serve --config`
gets, or in `config` of `octavo.serve`. [broker.md](broker.md) tells more. This page is generated: `python -m
tests.unit.broker.settings_page`.

## Honoured

{honoured}

`process.roles` must be `broker,controller`, and `controller.listener.names` names listeners that are left out.
`listener.security.protocol.map` must give all others PLAINTEXT. `node.id` (or `broker.id`) is that of a new
directory; a directory of another node is refused. `metadata.log.dir` is one of `log.dirs`, or a folder in which Kafka
keeps its metadata already.

## Refused

Ignoring them would be unsafe. A value that is empty or Kafka's default changes nothing, and is not refused. The same
goes for the settings of single listeners (`listener.name.NAME.ssl.keystore.location`).

{refused}

Settings that Kafka 4 has removed are refused, too:

{removed}

Several controllers in `controller.quorum.voters` or `controller.quorum.bootstrap.servers` are refused: the broker is
a cluster of one.

## Without effect

There is a warning for each. Settings that begin with {prefixes} are among them.

{without}

## Unknown

Whatever else there may be is an error, which suggests the nearest name.
"""


def page() -> str:
    refused = {name for name in KAFKA_SETTINGS if may_be_refused(name)}
    return _TEXT.format(
        honoured=_listed(HONOURED),
        refused="\n".join(f"- {_shown(name)}: {why}" for name, why in sorted(REFUSED.items())),
        removed=_listed(REMOVED),
        prefixes=", ".join(f"`{prefix}`" for prefix in PREFIXES),
        without=_listed(KAFKA_SETTINGS - HONOURED - refused),
    )


def _listed(names: Iterable[str]) -> str:
    return "\n".join(f"- {_shown(name)}" for name in sorted(names))


def _shown(name: str) -> str:
    return f"all of `{name}`" if name.endswith(".") else f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
