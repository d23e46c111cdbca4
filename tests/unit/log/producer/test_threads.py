"""Many threads use one producer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from octavo.log import Producer
from octavo.log.producer import RecordMetadata, SendFuture
from tests.unit.log.producer.producing import batches, directory, records, values

THREADS = 4
COUNT = 3000


def run(work: Callable[[int], None]) -> None:
    """Have all threads do it; raises what any of them raised."""
    raised: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []


def test_every_record_is_there_once_where_its_future_says_and_in_the_order_of_its_thread(tmp_path: Path) -> None:
    futures: list[list[SendFuture]] = [[] for _ in range(THREADS)]
    with directory(tmp_path, partitions=3) as data:
        with Producer(data, {"linger.ms": 1, "batch.size": 2000}) as producer:

            def send(thread: int) -> None:
                for number in range(COUNT):
                    future = producer.send("t", b"%d %d" % (thread, number), b"%d" % (number % 50))
                    futures[thread].append(future)
                    if number % 500 == 0:
                        future.result(60)

            run(send)
        found = [records(data, partition) for partition in range(3)]
        assert sum(map(len, found)) == THREADS * COUNT
        for thread in range(THREADS):
            for number, future in enumerate(futures[thread]):
                told = future.result()
                assert found[told.partition][told.offset].value == b"%d %d" % (thread, number)
            for partition in range(3):
                pairs = [(record.value or b"").split() for record in found[partition]]
                mine = [int(number) for whose, number in pairs if int(whose) == thread]
                assert mine == sorted(mine)
        for partition in range(3):
            sequences = [batch.base_sequence for batch in batches(data, partition)]
            assert sequences == [batch.base_offset for batch in batches(data, partition)]


def test_flushing_means_everything_that_was_sent_before(tmp_path: Path) -> None:
    with directory(tmp_path) as data, Producer(data, {"linger.ms": 1_000}) as producer:

        def send_and_flush(thread: int) -> None:
            for number in range(200):
                future = producer.send("t", b"%d %d" % (thread, number))
                producer.flush()
                assert future.done()

        run(send_and_flush)
        assert len(values(data)) == THREADS * 200


def test_what_is_sent_while_it_is_closed_is_appended_or_refused(tmp_path: Path) -> None:
    futures: list[SendFuture] = []
    with directory(tmp_path) as data:
        producer = Producer(data, {"linger.ms": 0})
        begun = threading.Event()

        def send(thread: int) -> None:
            if thread == 0:
                begun.wait()
                producer.close()
                return
            try:
                while True:
                    futures.append(producer.send("t", b"value"))
                    begun.set()
            except Exception:
                return

        run(send)
        appended = [future for future in futures if future.exception() is None]
        assert len(values(data)) == len(appended)


def test_a_callback_is_called_whoever_looks_for_it_when_its_record_is_appended(tmp_path: Path) -> None:
    called: list[RecordMetadata | None] = []

    class Late(SendFuture):
        """One that is done just after somebody has looked, and whose other thread looks at that moment."""

        looks = 0

        def done(self) -> bool:
            self.looks += 1
            if self.looks == 2:
                other = threading.Thread(target=producer._sender._call_back)
                other.start()
                other.join(0.2)
            return self.looks > 2

        def _outcome(self) -> tuple[None, RecordMetadata]:
            return None, RecordMetadata("t", 0, 0, 0)

    with directory(tmp_path) as data, Producer(data) as producer:
        producer._sender.call_back(Late(), lambda _, metadata: called.append(metadata))
        assert called == []
        producer._sender._call_back()
        deadline = time.monotonic() + 60
        while not called and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(called) == 1


def test_a_producer_can_be_closed_by_a_thread_that_was_interrupted_before_it_let_others_send(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        producer = Producer(data, {"linger.ms": 1})

        def close() -> None:
            producer._sender._sending.acquire()  # as an exception leaves it that comes before the release
            producer.send("t", b"value")
            producer.close()

        thread = threading.Thread(target=close, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert values(data) == [b"value"]
