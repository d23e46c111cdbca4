"""Declare, parse and check the options in the configurations of topics, producers and consumers.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ProducerConfig:
        linger_ms: int = option(5, int64(0))

    _OPTIONS = Options(ProducerConfig, "producer")
    _OPTIONS.parse("linger.ms", "20")

An option is a field of a dataclass. It has Kafka's name, with `_` in place of `.`, a default and a kind of values (see
`values`). A value is checked in the same way whether it is given by Kafka's name or by the field's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from octavo.errors import InvalidConfig
from octavo.log.config.nearest_name import nearest_name
from octavo.log.config.values import Choice, Kind, Word

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def option(default: Any, kind: Kind) -> Any:
    """Declare a field of a configuration dataclass."""
    return field(default=default, metadata={"kind": kind})


class Option(NamedTuple):
    """One option of a configuration."""

    name: str  # Kafka's name
    attribute: str
    kind: Kind
    default: Any


class Options:
    """The options of one dataclass."""

    def __init__(
        self,
        config: type,
        whose: str,
        *,
        refused: Mapping[str, str] = _NOTHING,
        parsed_as: Mapping[str, Kind] = _NOTHING,
        aliases: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Collect the fields of `config`, the configuration of a topic, producer or consumer (`whose`).

        refused: the options of Kafka that do not exist here, each with the reason; a name that ends in a dot stands
            for all that begin with it
        parsed_as: other kinds of values, for names that do not allow all values of their field
        aliases: other names of options, each with its attribute; their kinds must be in `parsed_as`
        """
        self.all: Final = tuple(
            Option(each.name.replace("_", "."), each.name, each.metadata["kind"], each.default)
            for each in fields(config)
        )
        self._whose: Final = whose
        self._refused: Final = refused
        self._kinds: Final = {each.name: each.kind for each in self.all} | dict(parsed_as)
        self._attributes: Final = {each.name: each.attribute for each in self.all} | dict(aliases)

    @property
    def names(self) -> frozenset[str]:
        """Kafka's names of all options."""
        return frozenset(self._kinds)

    def kind(self, name: str) -> Kind:
        """Return the kind of values that an option has. Raises `InvalidConfig`."""
        return self._kind(name, None)

    def parse(self, name: str, text: str) -> tuple[str, Any]:
        """Return the attribute and the value for an option that is given as text. Raises `InvalidConfig`."""
        kind = self._kind(name, text)
        try:
            value = kind.read(text)
        except (ValueError, AttributeError):  # an AttributeError if it is not a text
            raise _refusal(name, text, kind) from None
        if not kind.accepts(value):
            raise _refusal(name, text, kind)
        return self._attributes[name], value

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of options, by attribute. Values that are text are parsed. Raises `InvalidConfig`."""
        values = {}
        for name, value in given.items():
            if isinstance(value, str):
                attribute, value = self.parse(name, value)
            else:
                kind = self._kind(name, value)
                value = _word_for(kind, value)
                if not kind.accepts(value):
                    raise _refusal(name, value, kind)
                attribute = self._attributes[name]
            values[attribute] = value
        return values

    def check(self, config: object) -> None:
        """Check the fields of a configuration. Those given in Kafka's words are parsed. Raises `InvalidConfig`."""
        for name, attribute, kind, default in self.all:
            value = getattr(config, attribute)
            if value is default or kind.accepts(value):
                continue
            if isinstance(value, str) and isinstance(kind, Choice):
                _, meant = self.parse(name, value)
            else:
                meant = _word_for(kind, value)
                if not kind.accepts(meant):
                    raise _refusal(name, value, kind)
            object.__setattr__(config, attribute, meant)  # the configuration is frozen, and being made

    def check_name(self, name: str, value: object = None) -> None:
        """Check that there is an option of this name. Raises `InvalidConfig`."""
        self._kind(name, value)

    def _kind(self, name: str, value: object) -> Kind:
        kind = self._kinds.get(name)
        if kind is None:
            raise InvalidConfig(name, value, self._why_not(name))
        return kind

    def _why_not(self, name: str) -> str:
        """Return why there is no option of this name."""
        for refused, reason in self._refused.items():
            if name == refused or (refused.endswith(".") and name.startswith(refused)):
                return reason
        near = nearest_name(name, self._kinds)
        hint = "" if near is None else f"; is {near} meant?"
        return f"Kafka has no {self._whose} configuration of this name{hint}"


def _word_for(kind: Kind, value: Any) -> Any:
    """Return Kafka's word where a member of an enumeration was given for it, and else the value."""
    return kind.members.get(value, value) if isinstance(kind, Word) and isinstance(value, Enum) else value


def _refusal(name: str, value: object, kind: Kind) -> InvalidConfig:
    return InvalidConfig(name, value, f"it must be {kind.allowed}")
