"""Settings that Kafka has and that are refused here, because ignoring them would be unsafe.

A setting that is empty, or that has Kafka's default as its value, changes nothing, and is not refused. Neither is one
that Kafka ignores as well: TLS and SASL do nothing for listeners that are PLAINTEXT, and policies are those of
controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_UNSAFE: Final = "it would protect the broker, and that is not done here"
_POLICY: Final = "policies in Java cannot be asked"

# A name that ends in a dot stands for all that begin with it.
REFUSED: Final = {
    "sasl.": _UNSAFE,
    "ssl.": _UNSAFE,
    "authorizer.class.name": _UNSAFE,
    "super.users": _UNSAFE,
    "principal.builder.class": _UNSAFE,
    "delegation.token.": _UNSAFE,
    "security.": _UNSAFE,
    "connections.max.reauth.ms": _UNSAFE,
    "create.topic.policy.class.name": _POLICY,
    "alter.config.policy.class.name": _POLICY,
    "client.quota.callback.class": "quotas are not enforced here",
    "remote.log.storage.system.enable": "there is no remote storage here",
}
# What acts through listeners that `listeners` gives another protocol than PLAINTEXT; such listeners are refused.
OF_LISTENERS: Final = ("sasl.", "ssl.", "connections.max.reauth.ms", "security.providers")
# What only controllers ask. A broker with the role of a controller is one of them.
OF_CONTROLLERS: Final = ("create.topic.policy.class.name", "alter.config.policy.class.name")

_LISTENER: Final = "listener.name."
_DEFAULTS: Final = {
    "connections.max.reauth.ms": "0",
    "delegation.token.expiry.check.interval.ms": "3600000",
    "delegation.token.expiry.time.ms": "86400000",
    "delegation.token.max.lifetime.ms": "604800000",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "remote.log.storage.system.enable": "false",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.kinit.cmd": "/usr/bin/kinit",
    "sasl.kerberos.min.time.before.relogin": "60000",
    "sasl.kerberos.principal.to.local.rules": "DEFAULT",
    "sasl.kerberos.ticket.renew.jitter": "0.05",
    "sasl.kerberos.ticket.renew.window.factor": "0.8",
    "sasl.login.refresh.buffer.seconds": "300",
    "sasl.login.refresh.min.period.seconds": "60",
    "sasl.login.refresh.window.factor": "0.8",
    "sasl.login.refresh.window.jitter": "0.05",
    "sasl.login.retry.backoff.max.ms": "10000",
    "sasl.login.retry.backoff.ms": "100",
    "sasl.mechanism.controller.protocol": "GSSAPI",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI",
    "sasl.oauthbearer.assertion.algorithm": "RS256",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "300",
    "sasl.oauthbearer.assertion.claim.jti.include": "false",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": "60",
    "sasl.oauthbearer.clock.skew.seconds": "30",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "3600000",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "10000",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "100",
    "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    "sasl.oauthbearer.jwt.validator.class": "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "sasl.oauthbearer.scope.claim.name": "scope",
    "sasl.oauthbearer.sub.claim.name": "sub",
    "sasl.server.max.receive.size": "524288",
    "security.inter.broker.protocol": "PLAINTEXT",
    "ssl.allow.dn.changes": "false",
    "ssl.allow.san.changes": "false",
    "ssl.client.auth": "none",
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    "ssl.endpoint.identification.algorithm": "https",
    "ssl.keymanager.algorithm": "SunX509",
    "ssl.keystore.type": "JKS",
    "ssl.principal.mapping.rules": "DEFAULT",
    "ssl.protocol": "TLSv1.3",
    "ssl.trustmanager.algorithm": "PKIX",
    "ssl.truststore.type": "JKS",
}


def why_refused(name: str, value: str, ignorable: Iterable[str] = ()) -> str | None:
    """Return why a setting is refused; None if it is not.

    ignorable: names of settings that Kafka would ignore, too; one that ends in a dot stands for all that begin with it
    """
    for each in _meanings(name):
        why = _reason(each)
        if why is not None and not is_among(each, ignorable) and not _changes_nothing(each, value):
            return why
    return None


def may_be_refused(name: str) -> bool:
    """Return whether some values of a setting are refused."""
    return _reason(name) is not None


def is_unsafe(name: str) -> bool:
    """Return whether a setting of this name may protect the broker, so that it must not be ignored."""
    return _reason(name) == _UNSAFE


def _meanings(name: str) -> Iterator[str]:
    """Yield a name, and what it may be for one listener, or one mechanism: `listener.name.L.plain.sasl.jaas.config`."""
    yield name
    rest = name.removeprefix(_LISTENER) if name.startswith(_LISTENER) else ""
    while rest:
        rest = rest.partition(".")[2]
        yield rest


def _reason(name: str) -> str | None:
    return next((why for refused, why in REFUSED.items() if is_among(name, [refused])), None)


def is_among(name: str, names: Iterable[str]) -> bool:
    """Return whether a name is one of `names`; one that ends in a dot stands for all that begin with it."""
    return any(name == each or (each.endswith(".") and name.startswith(each)) for each in names)


def _changes_nothing(name: str, value: str) -> bool:
    words = [word.strip() for word in value.split(",")]
    return words == [""] or words == _DEFAULTS.get(name, "").split(",") or value.strip().lower() == _DEFAULTS.get(name)
