"""Where a broker listens and what clients are told, as the settings say it: `read_addresses`.

Listeners have names, which `listener.security.protocol.map` gives protocols. Only PLAINTEXT is served, under any name;
a listener with another protocol is refused. The listeners of a controller (`controller.listener.names`) are left out:
there is nobody who would call it. Names are compared without case, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from octavo.broker.config import ADVERTISED, CONTROLLER_LISTENERS, LISTENERS, PROTOCOLS
from octavo.errors import InvalidConfig, InvalidInput

LOOPBACK: Final = "127.0.0.1"
ALL_INTERFACES: Final = ("0.0.0.0", "::")
PLAINTEXT: Final = "PLAINTEXT"
_PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Address(NamedTuple):
    """Where a broker listens, and what clients are told."""

    host: str
    port: int
    advertised: tuple[str | None, int] | None = None  # None: where it listens; a host that is None: this machine
    name: str = "PLAINTEXT"  # that other brokers know it by


class Addresses(NamedTuple):
    """All addresses of a broker."""

    listening: list[Address]
    warnings: list[str]


class _Endpoint(NamedTuple):
    name: str
    host: str | None  # None: all interfaces
    port: int


def read_addresses(listen: str | None, properties: Mapping[str, str]) -> Addresses:
    """Return where to listen: at `listen` (`HOST:PORT`), or where the settings say. Raises `InvalidInput`."""
    named = _endpoints(LISTENERS, properties)
    protocols = _protocols(properties)
    for name in [each.name for each in named] or [PLAINTEXT]:
        protocol = protocols.get(name)
        if protocol is None:
            raise InvalidConfig(PROTOCOLS, properties.get(PROTOCOLS), f"it gives the listener {name} no protocol")
        if protocol != PLAINTEXT:
            raise InvalidConfig(LISTENERS, properties.get(LISTENERS), f"only {PLAINTEXT} is served, not {protocol}")
    told = {each.name: (each.host, each.port) for each in _endpoints(ADVERTISED, properties)}
    for host, _ in told.values():
        if host in ALL_INTERFACES:
            raise InvalidConfig(ADVERTISED, properties[ADVERTISED], f"clients cannot connect to {host}")
    if listen is not None or not named:
        host, port = (LOOPBACK, 0) if listen is None else parse_address(listen)
        named = [_Endpoint(named[0].name if named else _name_of(told), host, port)]
    listening = [
        Address(each.host or ALL_INTERFACES[0], each.port, told.pop(each.name, None), each.name) for each in named
    ]
    return Addresses(listening, [f"{ADVERTISED} has no effect for {name}: there is no such listener" for name in told])


def _name_of(told: Mapping[str, object]) -> str:
    """Return the name of the only listener, which has none of its own."""
    return next(iter(told)) if len(told) == 1 else PLAINTEXT


def _protocols(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the protocols of listeners. Raises `InvalidConfig`."""
    text = properties.get(PROTOCOLS)
    if text is None:
        return {name: name for name in _PROTOCOLS}
    protocols = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip().upper() for part in each.partition(":"))
        if not name or protocol not in _PROTOCOLS:
            raise InvalidConfig(PROTOCOLS, text, f"it must be NAME:PROTOCOL,..., with {', '.join(_PROTOCOLS)}")
        protocols[name] = protocol
    return protocols


def controller_protocol(properties: Mapping[str, str]) -> str:
    """Return the protocol of the listener by which brokers reach controllers, the first. Raises `InvalidConfig`."""
    name = properties.get(CONTROLLER_LISTENERS, "").partition(",")[0].strip().upper()
    return _protocols(properties).get(name, PLAINTEXT)


def _endpoints(setting: str, properties: Mapping[str, str]) -> list[_Endpoint]:
    """Parse `NAME://HOST:PORT,...`, and leave out the controller's. Raises `InvalidConfig`."""
    text = properties.get(setting, "")
    controllers = {name.strip().upper() for name in properties.get(CONTROLLER_LISTENERS, "").split(",")}
    endpoints: list[_Endpoint] = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, separator, place = each.partition("://")
        name = name.strip().upper()
        if not separator or not name:
            raise InvalidConfig(setting, text, "it must be NAME://HOST:PORT, or several with commas between them")
        try:
            host, port = parse_address(place)
        except InvalidInput as error:
            raise InvalidConfig(setting, text, str(error)) from None
        if name not in controllers:
            endpoints.append(_Endpoint(name, None if place.startswith(":") else host, port))
    if text.strip() and not endpoints and setting == LISTENERS:
        raise InvalidConfig(setting, text, f"all of them are in {CONTROLLER_LISTENERS}, and none is left for clients")
    return endpoints


def parse_address(text: str) -> tuple[str, int]:
    """Return the host and port of `HOST:PORT`, `[IPv6]:PORT` or `PORT` alone. Raises `InvalidInput`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise InvalidInput(f"{text!r} is no address: it must be HOST:PORT, like {LOOPBACK}:9092")
    return host, int(port)
