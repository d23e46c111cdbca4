"""A checker of histories, in the manner of Jepsen's Kafka workload.

Clients of a cluster that is being hurt write down what they ask for and what they are answered. Afterwards the checker
looks for what no order of events can explain. It knows nothing of brokers, so it judges one node or many alike.

    history = History()
    producer = history.client(Promises.IDEMPOTENT)
    send = producer.send(("events", 0), value=17)     # noted when it is asked for
    send.succeed(offset=4)                            # or fail(), or nothing at all: then nobody knows
    consumer = history.client()
    consumer.assign({("events", 0): 0})               # also for each seek; None for a place that is not known
    consumer.poll().succeed({("events", 0): [(4, 17)]})
    report = check(history)
    assert report.is_clean, report

Every value is sent once. So a value that is found says which send has written it. What is looked for (`Kind`):

    lost write              acknowledged, and never read although later offsets were
    unseen                  acknowledged, and nothing at or after its offset was ever read
    duplicate               one value at two offsets (a producer without idempotence may do that)
    inconsistent offset     two values at one offset
    phantom                 a value that nobody has sent to this partition, a damaged one for instance
    failed but there        the value of a send that was refused
    nonmonotonic send       a producer's later send was acknowledged with an earlier offset
    reorder                 the same, where only reading tells the offsets
    out of time             a send that began after another was acknowledged has an earlier offset, whoever sent them
    nonmonotonic poll       a consumer was given an offset that is not after the last one (also within one poll)
    skipped                 a consumer was led past a value that is there (also within one poll)

Compaction and retention remove values on purpose: `Removals` says where. Another operation (the begin and end of a
transaction, a rebalance) becomes another class in `operations` and another search in `checker.SEARCHES`.
"""

from tests.history.anomalies import Anomaly, Kind, Report
from tests.history.checker import check
from tests.history.history import Client, History
from tests.history.operations import Assign, Operation, Outcome, Partition, Poll, Promises, Send
from tests.history.versions import Removals

__all__ = [
    "Anomaly",
    "Assign",
    "Client",
    "History",
    "Kind",
    "Operation",
    "Outcome",
    "Partition",
    "Poll",
    "Promises",
    "Removals",
    "Report",
    "Send",
    "check",
]
