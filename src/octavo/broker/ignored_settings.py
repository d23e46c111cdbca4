"""What becomes of settings that are not honoured: `judge` refuses them, or says that they have no effect.

Apache Kafka ignores names that it does not know, and files that have served for years are full of them: settings of
plugins and vendors, and of versions that are gone. So there is a warning for them, not an error, and a name that looks
misspelt is told with the one that may be meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from textwrap import wrap
from typing import Final

from octavo.broker.kafka_settings import KAFKA_SETTINGS, PREFIXES, REMOVED
from octavo.broker.refused_settings import OF_CONTROLLERS, OF_LISTENERS, is_among, is_unsafe, why_refused
from octavo.errors import InvalidConfig
from octavo.log.config.nearest_name import nearest_name

_PROVIDERS: Final = "config.providers"
_VARIABLE: Final = re.compile(r"\$\{([^}:]*):[^}]*\}")  # ${PROVIDER:KEY} or ${PROVIDER:PATH:KEY}
_LONGEST: Final = 800  # characters of names in one warning, so that it is not cut off where it is shown
_MISSPELT: Final = 0.9  # how similar names are, of which one is meant by the other


def judge(properties: Mapping[str, str], honoured: Collection[str], *, is_member: bool) -> list[str]:
    """Return warnings for the settings that have no effect. Raises `InvalidConfig` for one that is refused.

    honoured: the names of settings that have one
    """
    _check_variables(properties, honoured)
    ignorable = (*(OF_LISTENERS if "listeners" in properties else ()), *(OF_CONTROLLERS if is_member else ()))
    by_reason: dict[str, list[str]] = {}
    misspelt = []
    for name, value in properties.items():
        if name in honoured:
            continue
        why = why_refused(name, value, ignorable)
        if why is not None:
            raise InvalidConfig(name, None, why)  # its value may be a password
        if name in KAFKA_SETTINGS or name.startswith(PREFIXES) or is_unsafe(name):
            by_reason.setdefault("without effect", []).append(name)
        elif is_among(name, REMOVED):
            by_reason.setdefault("without effect, removed in Kafka 4", []).append(name)
        elif (near := nearest_name(name, KAFKA_SETTINGS, least=_MISSPELT)) is not None:
            misspelt.append(f"{name} has no effect: Kafka has no setting of this name; is {near} meant?")
        else:
            by_reason.setdefault("without effect, unknown to Kafka", []).append(name)
    return misspelt + [
        f"settings {reason}: {part}" for reason, names in by_reason.items() for part in wrap(", ".join(names), _LONGEST)
    ]


def _check_variables(properties: Mapping[str, str], honoured: Collection[str]) -> None:
    """Check that no setting that counts has its value from a provider. Raises `InvalidConfig`."""
    providers = {name.strip() for name in properties.get(_PROVIDERS, "").split(",")} - {""}
    for name, value in properties.items():
        if name in honoured and any(provider in providers for provider in _VARIABLE.findall(value)):
            raise InvalidConfig(name, value, f"providers ({_PROVIDERS}) cannot be asked; write the value itself")
