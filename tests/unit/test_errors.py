"""The tree in `octavo.errors` is the whole tree, and is drawn as it is."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

import octavo
from octavo import errors
from octavo.errors.root import Signal
from octavo.log.names import TopicPartition
from octavo.log.retention import ENTRY_POINTS

_BRANCH: Final = re.compile(r"^    ((?:│   |    )*)(?:├── |└── )?(\w+)(?:  |$)")
_PARTITION: Final = TopicPartition("orders", 3)
_DATA: Final[dict[str, tuple[Any, ...]]] = {  # arguments of errors that take other ones than a sentence
    "AppendRefused": (errors.ErrorCode.INVALID_RECORD, "no", (errors.RecordError(1, "no key"),)),
    "BadPolicy": ("gold", "is not there"),
    "BadTable": ("/table", "is none"),
    "BrokerUnreachable": ("127.0.0.1:9092", "it closed the connection"),
    "ChecksumMismatch": (7, 1, 2),
    "CorruptFile": (Path("/data/a.log"), 7, "its magic is 9"),
    "DataLoss": (_PARTITION, 3, 5),
    "DeserializationFailed": (_PARTITION, 3, "key"),
    "DirectoryLocked": ("/data", 4711),
    "ExportConflict": ("/table", "it was changed"),
    "InvalidConfig": ("linger.ms", -1, "it must be at least 0"),
    "LimitExceeded": (7, "a batch", 10, 5),
    "LockLost": ("/data",),
    "NoOffset": (_PARTITION,),
    "NoSuchFile": ("/data/a.log", "No such file or directory"),
    "NoSegments": ("/data/orders-3",),
    "OffsetOutOfRange": (9, 0, 5),
    "RecordTooLarge": (9, 5, "max.request.size"),
    "RequestFailed": (3, "there is no such topic"),
    "SparkTooOld": ("a stream", "4.2", "4.0.0", ": use a batch"),
    "TableError": ("/table", "is none"),
    "Unreadable": ("/data/a.log", "it is a directory"),
    "WouldLoseRecords": ("/data/t-0/0.log", 109, "checksum", 1, 98),
    "WrongProcess": ("/data", 4711),
    "WrongTransactionOrder": ("send", "outside a transaction", "call begin_transaction first"),
}


def drawn() -> dict[str, str | None]:
    """Every error of the drawing, with the one that it hangs from."""
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        found = _BRANCH.match(line)
        if found is not None:
            depth = 0 if found[2] == "OctavoError" else len(found[1]) // 4 + 1
            del above[depth:]
            parents[found[2]] = above[-1] if above else None
            above.append(found[2])
    return parents


def exported() -> dict[str, type[BaseException]]:
    found = {name: getattr(errors, name) for name in errors.__all__}
    return {name: thing for name, thing in found.items() if issubclass(thing, BaseException)}


def test_every_public_exception_of_every_module_is_one_of_these() -> None:
    defined = set()
    for module in pkgutil.walk_packages(octavo.__path__, "octavo."):
        if not module.name.endswith("__main__"):
            for name, thing in vars(import_module(module.name)).items():
                is_ours = inspect.isclass(thing) and thing.__module__.startswith("octavo.")
                is_error = is_ours and issubclass(thing, BaseException) and not issubclass(thing, Signal)
                if is_error and not name.startswith("_"):
                    defined.add(thing)
    assert defined == set(exported().values())


def test_the_drawing_has_every_exception_in_its_place() -> None:
    bases = {name: [base.__name__ for base in error.__bases__] for name, error in exported().items()}
    assert drawn().keys() == bases.keys()
    assert [name for name, parent in drawn().items() if parent is not None and parent not in bases[name]] == []


@pytest.mark.parametrize("name", [name for name in exported() if name not in ("OctavoError",)])
def test_an_error_survives_being_pickled_and_says_where_it_is_imported_from(name: str) -> None:
    kind = exported()[name]
    default: tuple[Any, ...] = (7, "it is wrong") if issubclass(kind, errors.FormatError) else ("it is wrong",)
    if issubclass(kind, errors.BadDirectory):
        default = ("/data", "it is wrong")
    error = kind(*_DATA.get(name, default))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.__dict__) == (str(error), error.__dict__)
    assert kind.__module__ == "octavo.errors"


def test_every_error_of_a_log_has_a_code_of_kafka() -> None:
    for error in exported().values():
        if issubclass(error, errors.LogError) and error is not errors.AppendRefused:
            assert isinstance(error.code, errors.ErrorCode)


def test_a_bad_policy_names_the_entry_points_that_it_came_from() -> None:
    assert repr(ENTRY_POINTS) in str(errors.BadPolicy("gold", "is not there"))
