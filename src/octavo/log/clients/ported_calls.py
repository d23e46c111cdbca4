"""Answer calls of other Kafka clients, and of older versions of Octavo, with what to write instead.

Programs are ported from kafka-python and confluent-kafka. Many of their calls have the same name and meaning here. The
others raise `WrongCall`, or `AttributeError` for a method that does not exist. The message says what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Final, Never, NoReturn, ParamSpec, TypeVar

from octavo.errors import WrongCall

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

NO_WAIT: Final = "nothing is waited for here, leave it out"
ONE_BY_ONE: Final = "write them without a name, one by one or in one list"
NO_LISTENER: Final = "write on_assign=, on_revoke= and on_lost=, functions of the consumer and of partitions"
_NO_BROKERS: Final = "there are no brokers here, leave it out"
_NO_METRICS: Final = "there are no metrics here, leave it out"
_TOPICS: Final = "write DataDirectory.topics"

# Methods and attributes of other clients, and what to write instead.
OF_PRODUCERS: Final = {
    "bootstrap_connected": _NO_BROKERS,
    "list_topics": _TOPICS,
    "metrics": _NO_METRICS,
    "poll": "the thread that appends a record calls on_delivery, leave it out",
    "produce": "write send(topic, value, key, on_delivery=...)",
    "produce_batch": "write send(topic, value, key) for each record",
    "purge": "write abort_transaction() or close()",
    "set_sasl_credentials": _NO_BROKERS,
}
OF_CONSUMERS: Final = {
    "bootstrap_connected": _NO_BROKERS,
    "commit_async": "write commit(), which returns when the offsets are written",
    "consume": "write poll(timeout=..., max_records=...)",
    "get_watermark_offsets": "write beginning_offsets([partition]) and end_offsets([partition])",
    "group_metadata": "write consumer_group_metadata()",
    "highwater": "write end_offsets([partition])",
    "incremental_assign": "a group gives partitions by itself; otherwise write assign(partitions), with all of them",
    "incremental_unassign": "write assign(partitions), with all that are left",
    "list_topics": _TOPICS,
    "metrics": _NO_METRICS,
    "partitions_for_topic": "write partitions_for(topic)",
    "set_sasl_credentials": _NO_BROKERS,
    "store_offsets": "write commit({partition: offset})",
    "topics": _TOPICS,
    "unassign": "write unsubscribe()",
}
OF_FUTURES: Final = {
    "add_callback": "write add_done_callback(function), or send(..., on_delivery=function)",
    "add_errback": "write add_done_callback(function), or send(..., on_delivery=function)",
    "failed": "write exception() is not None",
    "get": "write result(timeout=...)",
    "is_done": "write done()",
    "succeeded": "write exception() is None",
    "value": "write result()",
}
OF_RECORDS: Final = {"timestamp": "write timestamp_ms"}


def in_seconds(name: str, value: object) -> str | None:
    """Return what to write instead of the arguments `timeout_s` and `timeout_ms`; None for any other argument."""
    if name == "timeout_s":
        return f"write timeout={value!r}, in seconds"
    if name == "timeout_ms":
        return f"write timeout={value / 1000:g}, in seconds" if isinstance(value, int | float) else "write timeout"
    return None


def wrong_call(what: str, given: tuple[object, ...], named: Mapping[str, Any], instead: Mapping[str, str]) -> NoReturn:
    """Raise `WrongCall` for arguments that `what` does not take.

    `instead`: what to write, by argument. Under `""` it has what the method takes, and under `"*"` what to write for
    arguments that were given by position.
    """
    told = []
    for name, value in named.items():
        hint = instead.get(name) or in_seconds(name, value) or f"it takes {instead['']}"
        told.append(f"{what} has no argument {name}: {hint}")
    if given:
        shown = ", ".join(map(repr, given))
        told.append(f"{what} takes {shown} by name only: {instead.get('*') or instead['']}")
    raise WrongCall("; ".join(told))


def refusing(method: Callable[P, R]) -> Callable[P, R]:
    """Hide parameters of type `Never` in the signature of a method. The method itself refuses them.

    Calls become no slower. `answering` is simpler, for methods where speed does not matter.
    """
    shown = signature(method)
    taken = [each for each in shown.parameters.values() if each.annotation not in ("Never", Never)]
    method.__signature__ = shown.replace(parameters=taken)  # type: ignore[attr-defined]  # `inspect` looks there
    return method


def quick_way_of(method: Callable[P, R]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a fast variant of `method` its signature and docstring. The variant passes unusual calls on to `method`."""

    def decorate(quick: Callable[..., R]) -> Callable[P, R]:
        name, qualified = quick.__name__, quick.__qualname__
        wraps(method)(quick)
        quick.__name__, quick.__qualname__ = name, qualified
        return quick

    return decorate


def answering(**instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a method so that an unknown argument raises `WrongCall`, which says what to write."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        parameters = list(signature(method).parameters.values())[1:]
        takes = ", ".join(str(each.replace(annotation=each.empty)) for each in parameters) or "no arguments"

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return method(*args, **kwargs)
            except TypeError as error:
                trace = error.__traceback__
                if trace is not None and trace.tb_next is not None:
                    raise  # the error is from inside the method
            known = {each.name for each in parameters if each.kind is not each.VAR_POSITIONAL}
            foreign = {name: value for name, value in kwargs.items() if name not in known}
            if not foreign:
                raise WrongCall(f"{method.__qualname__} takes {takes}")
            wrong_call(method.__qualname__, (), foreign, {"": takes, **instead})

        return call

    return decorate


class _Elsewhere:
    """An attribute that other clients have, and this class does not."""

    def __init__(self, name: str, instead: str) -> None:
        self._name: Final = name
        self._instead: Final = instead

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name}: {self._instead}")


def without(**instead: str) -> Callable[[C], C]:
    """Decorate a class so that attributes of other clients raise `AttributeError`, which says what to write.

    To `hasattr` and `dir` they do not exist. Attributes that do exist are found as fast as before.
    """

    def without_them(self: object) -> list[str]:
        return [name for name in object.__dir__(self) if name not in instead]

    def decorate(kind: C) -> C:
        for name, hint in instead.items():
            setattr(kind, name, _Elsewhere(name, hint))
        setattr(kind, "__dir__", without_them)  # noqa: B010 (a method, in the eyes of a type checker)
        return kind

    return decorate
