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

Transactions are written down too. Then all consumers read committed records only.

    transaction = producer.begin()
    poll = consumer.poll(transaction=transaction)     # what is read in order to be transformed
    poll.succeed({("events", 0): [(4, 17)]})
    producer.send(("others", 0), value=18, transaction=transaction).succeed(offset=0)
    transaction.send_offsets("group", {("events", 0): 5})
    transaction.commit()                              # noted when it is asked for
    transaction.succeed()                             # or fail() if it was aborted, or nothing at all
    consumer.fetch_offsets("group").succeed({("events", 0): 5})

    aborted read            a value of a transaction that was aborted, or that nobody has asked to commit (G1a)
    dirty read              a value that was read before the commit of its transaction was asked for (G1b)
    torn transaction        of a transaction whose end is unknown some values or offsets were seen, and others never
    cycle                   transactions that each come before the other (G1c): `cycles` says what that means
    phantom offsets         a group goes on from an offset that only aborted transactions have committed, or none
    lost offsets            a group goes on from before an offset that is committed
    processed twice         two committed transactions of a group were made of one record
    processed never         a group was led past a record by a committed offset, and no transaction was made of it

Of an acknowledged transaction, a value that is missing is a lost write. Writes of transactions may be interleaved (G0):
Kafka allows that.

Compaction and retention remove values on purpose: `Removals` says where. Another operation (a rebalance) becomes
another class in `operations` and another search in `checker.SEARCHES`.
"""

from tests.history.anomalies import Anomaly, Kind, Report
from tests.history.checker import check
from tests.history.history import Client, History
from tests.history.operations import (
    Assign,
    FetchOffsets,
    Operation,
    Outcome,
    Partition,
    Poll,
    Promises,
    Send,
    Transaction,
)
from tests.history.versions import Removals

__all__ = [
    "Anomaly",
    "Assign",
    "Client",
    "FetchOffsets",
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
    "Transaction",
    "check",
]
