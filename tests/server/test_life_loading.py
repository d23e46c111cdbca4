"""A broker serves before everything is loaded that appends need, and loads it elsewhere."""

from __future__ import annotations

import subprocess
import sys

_SMALL_AND_LARGE = """
import sys
from octavo.server.serving import serve
from tests.server.conversation import Conversation
from tests.server.questions import batch
from octavo.broker.wire.api_keys import PRODUCE
import threading
import octavo.log.append.readiness as readiness
from octavo.log.append.validator import Validator
from octavo.records.kernels.compilation import loading

threads = set()
assign, loaded = Validator.assign, loading._loaded

def noting(self, data, *rest):
    threads.add((threading.current_thread().name.split("_")[0], len(data) > 100_000))
    return assign(self, data, *rest)

def load(kernel):
    assert threading.current_thread().name != "octavo-reactor", kernel
    return loaded(kernel)

Validator.assign, loading._loaded = noting, load
with serve() as server:
    client = Conversation(server.bootstrap_servers)
    server.directory.create_topic("events")

    def produce(value):
        partition = {"index": 0, "records": batch(value)}
        content = {"transactional_id": None, "acks": 1, "timeout_ms": 1000,
                   "topic_data": [{"name": "events", "partition_data": [partition]}]}
        (topic,) = client.raw_answer(PRODUCE, 9, content).responses
        assert topic.partition_responses[0].error_code == 0

    produce(b"x" * 600_000)
    assert threads == {("octavo-worker-append", True)}, threads
    threads.clear()
    while ("octavo-reactor", True) not in threads:  # as soon as the kernels are there
        produce(b"x" * 600_000)
    assert server.directory.log("events", 0).end_offset > 1
"""


def test_what_appends_need_is_never_loaded_by_the_thread_that_serves() -> None:
    subprocess.run([sys.executable, "-c", _SMALL_AND_LARGE], check=True, timeout=300)


def test_a_broker_that_listens_has_not_imported_what_is_slow_to_import() -> None:
    program = """
import sys
import octavo.server.serving
slow = {"numpy", "numba", "llvmlite", "pyarrow", "pyspark", "kio", "hypothesis", "re2"} & sys.modules.keys()
slow |= {"octavo.coordinator.groups.group_shard"} & sys.modules.keys()
assert not slow, slow
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_the_command_does_without_hypothesis() -> None:
    program = """
import sys
from octavo.cli.serve import leave_hypothesis_out
leave_hypothesis_out()
import kio.static.primitive
assert not sys.modules["hypothesis"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
