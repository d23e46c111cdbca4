"""Write the list of settings in docs/broker-settings.md: `python -m tests.unit.broker.settings_page`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from octavo.broker.config import HONOURED
from octavo.broker.kafka_settings import KAFKA_SETTINGS, PREFIXES, REMOVED
from octavo.broker.member.config import MEMBER_NAMES
from octavo.broker.refused_settings import OF_CONTROLLERS, OF_LISTENERS, REFUSED, may_be_refused

PAGE = Path(__file__).parents[3] / "docs" / "broker-settings.md"

_TEXT = """\
# Settings of the broker

What becomes of each setting that a broker of Apache Kafka 4.3 has, if it is in the file that `octavo serve FILE`
gets, or in `config` of `octavo.serve`. [broker.md](broker.md) tells more. This page is generated: `python -m
tests.unit.broker.settings_page`.

## Honoured

{honoured}

`process.roles` is `broker,controller`, for a broker that is alone, or `broker`, for a member of a cluster.
`controller.listener.names` names listeners that are left out, and that a member must not have.
`listener.security.protocol.map` must give all others PLAINTEXT. `node.id` (or `broker.id`) is that of a new
directory; a directory of another node is refused. `metadata.log.dir` is one of `log.dirs`, or a folder in which Kafka
keeps its metadata already.

A member of a cluster honours these, too; they have no effect for a broker that is alone:

{member}

## Refused

Ignoring them would be unsafe. A value that is empty or Kafka's default changes nothing, and is not refused. The same
goes for the settings of single listeners (`listener.name.NAME.ssl.keystore.location`).

{refused}

What Kafka ignores as well is not refused: {of_listeners} have no effect if `listeners` is set, because only
PLAINTEXT may be the protocol of a listener then, and {of_controllers} if the broker is a member of a cluster, because
controllers ask policies.

A setting that is honoured, but has its value from a provider (`${{PROVIDER:KEY}}` with `config.providers`), is refused.
So are several controllers in `controller.quorum.voters` or `controller.quorum.bootstrap.servers` for a broker that is
alone, the role `controller` without `broker`, and `zookeeper.connect` without `process.roles`.

## Without effect

Warnings name them. Settings that begin with {prefixes} are among them.

{without}

So are those that Kafka 4 has removed:

{removed}

Names that Kafka does not know have no effect either, as in Kafka. The warning suggests another name if one is very
similar.
"""


def page() -> str:
    refused = {name for name in KAFKA_SETTINGS if may_be_refused(name)}
    return _TEXT.format(
        honoured=_listed(HONOURED),
        member=_listed(MEMBER_NAMES),
        refused="\n".join(f"- {_shown(name)}: {why}" for name, why in sorted(REFUSED.items())),
        removed=_listed(REMOVED),
        of_listeners=_sentence(OF_LISTENERS),
        of_controllers=_sentence(OF_CONTROLLERS),
        prefixes=", ".join(f"`{prefix}`" for prefix in PREFIXES),
        without=_listed(KAFKA_SETTINGS - HONOURED - MEMBER_NAMES - refused),
    )


def _listed(names: Iterable[str]) -> str:
    return "\n".join(f"- {_shown(name)}" for name in sorted(names))


def _sentence(names: Iterable[str]) -> str:
    *most, last = map(_shown, names)
    return f"{', '.join(most)} and {last}"


def _shown(name: str) -> str:
    return f"all of `{name}`" if name.endswith(".") else f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
