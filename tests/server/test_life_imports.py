"""Mend 2.1: threads that import at the same time do not hold each other up, and one that fails is told of."""

from __future__ import annotations

import subprocess
import sys

import pytest

from octavo.server import serving
from octavo.server.serving import serve

# The loading thread does not go on before the first request is answered.
_FIRST_ANSWER = """
import sys
import threading

sys.modules["hypothesis"] = None
import octavo.log.append.readiness as readiness
from octavo.broker.wire.api_keys import API_VERSIONS
from octavo.server.serving import serve
from tests.server.raw import RawClient, header

imported, is_answered, waited = set(), threading.Event(), []

class Finder:
    def find_spec(self, name, path=None, target=None):
        imported.add((threading.current_thread().name.split("_")[0], name.split(".")[0]))

def import_all():
    waited.append(is_answered.wait(60))
    import octavo.log.append.validator

readiness._import_all = import_all
sys.meta_path.insert(0, Finder())
with serve() as server:
    with RawClient(server.bootstrap_servers) as client:
        assert client.ask(header(API_VERSIONS, 0, flexible=False)) is not None
    is_answered.set()
assert waited == [True], waited
assert ("octavo-worker-append", "kio") not in imported, imported
assert ("octavo-worker-append", "numpy") in imported, imported
"""

# One thread imports the package of a message while another imports a module of it.
_TOGETHER = """
import sys
import threading
from importlib.machinery import PathFinder

sys.modules["hypothesis"] = None
from octavo.broker.wire.api_keys import HEARTBEAT
from octavo.broker.wire.messages import declaration

failed = []

def declare(kind):
    try:
        declaration(HEARTBEAT, 1, kind)
    except BaseException as error:
        failed.append(error)

other = threading.Thread(target=declare, args=("response",))

def wait_until_it_stands_still(thread):
    before, count = None, 0
    while thread.is_alive() and count < 200:
        thread.join(0.001)
        frame = sys._current_frames().get(thread.ident)
        now = None if frame is None else (frame.f_code.co_name, frame.f_lasti)
        count = count + 1 if now == before and now is not None else 0
        before = now

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "kio.schema.heartbeat.v1":
            return None
        spec = PathFinder.find_spec(name, path)
        create = spec.loader.create_module

        def create_later(spec):  # with the lock of this module, which nobody else sees yet
            other.start()
            wait_until_it_stands_still(other)
            return create(spec)

        spec.loader.create_module = create_later
        return spec

import kio.schema.heartbeat
import kio.static.constants, kio.schema.index, pkgutil
sys.meta_path.insert(0, Finder())
declare("request")
other.join()
assert not failed, failed
"""


@pytest.mark.parametrize("program", [_FIRST_ANSWER, _TOGETHER], ids=["first-answer", "together"])
def test_imports_of_several_threads(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_a_loading_thread_that_fails_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("NumPy is broken")

    monkeypatch.setattr(serving, "prepare", fail)
    said: list[str] = []
    serve(say=said.append).close()  # which waits for its threads
    assert any("NumPy is broken" in each for each in said)
