"""Exceptions that Octavo raises. This is the whole tree.

    OctavoError
    ├── FormatError                    bytes break a rule of the format; has `position` and `rule`
    │   ├── Truncated                  the bytes end before the structure does
    │   ├── Corrupt                    the bytes cannot be what a writer wrote
    │   │   ├── ChecksumMismatch       the stored and the computed checksum differ
    │   │   ├── BadLength              a length, size or count is not possible at its place
    │   │   ├── BadVarint              a varint continues after its last possible byte
    │   │   ├── BadRecord              a record breaks a rule of its batch
    │   │   ├── BadCompression         a compressed stream does not decompress
    │   │   └── CorruptFile            a file on disk cannot be what Kafka or Octavo wrote; has its `path`
    │   ├── LimitExceeded              the structure is larger than the caller allows
    │   └── Unsupported                the bytes are well formed, but of a kind that Octavo does not handle
    ├── LogError                       a log, or a directory of logs, cannot do what the caller asked for
    │   ├── OffsetOutOfRange           the log does not hold this offset; has the range that it does hold
    │   ├── AppendRefused              Kafka would refuse these batches; has its error code and the records at fault
    │   ├── UnknownPartition           there is no such topic or partition
    │   │   └── NotReady               the partition is being created, and has no segment yet
    │   ├── TopicExists                a topic of this name exists already
    │   ├── PolicyViolation            the topic's configuration forbids the operation
    │   ├── BadPolicy                  a retention policy from another package cannot be used
    │   ├── CompactionAborted          truncating, deleting from or closing the log aborted its compaction
    │   ├── BadDirectory               a directory or file is not in a state that Kafka or Octavo leave behind
    │   │   ├── OthersDecide           other nodes of a cluster decide what the directory contains
    │   │   ├── NoSegments             the folder of a partition has no segments
    │   │   ├── DataLoss               offsets that a query has to read are no longer in the log
    │   │   └── CommitUnresolved       an interrupted commit of staged batches cannot be finished
    │   ├── CommitPending              a commit of staged batches is decided, and will be finished later
    │   ├── WouldLoseRecords           a log is damaged before sound batches, which opening it would cut off
    │   ├── DirectoryLocked            another process, or this one, has the directory open
    │   ├── LockLost                   the lock file of an open directory was deleted or replaced
    │   ├── WrongProcess               a fork of the process that opened the directory tried to write
    │   ├── Closed                     the log, directory, producer or consumer is closed
    │   │   ├── ProducerClosed         the producer is closed
    │   │   └── ConsumerClosed         the consumer is closed; also a `ConsumerError`
    │   ├── SendTimedOut               the log could not be written within the producer's timeout
    │   ├── TransactionAborted         the record was dropped with its transaction
    │   ├── TransactionFailed          something in the transaction failed, so it can only be aborted
    │   ├── WrongTransactionOrder      the methods of a transactional producer were called in the wrong order
    │   ├── ConsumerError              the consumer cannot do what it was asked to do
    │   │   ├── NoOffset               there is no committed offset to begin at, and no rule where to begin
    │   │   ├── DeserializationFailed  a deserializer failed on a record; has its `partition` and `offset`
    │   │   └── WokenUp                another thread called `wakeup`
    │   └── CoordinatorRefused         the coordinator of offsets and transactions refuses a request
    │       ├── ProducerFenced         another producer has the transactional id now
    │       ├── UnknownProducer        the transactional id does not belong to this producer id, or does not exist
    │       ├── WrongTransactionState  the transaction is in a state that does not allow the request
    │       ├── TransactionIsEnding    the last transaction is not ended in every partition yet
    │       ├── WrongTimeout           the transaction timeout is too long or too short
    │       ├── WrongGroup             the group id is not valid
    │       ├── MemberFenced           the consumer is no longer a member of its group
    │       └── MetadataTooLarge       the metadata of a committed offset are too long
    ├── TableError                     a table cannot do what the caller asked for; has its `path`
    │   ├── BadTable                   the table is not in a state that an export leaves behind
    │   └── ExportConflict             another export has changed the table meanwhile, so nothing was added
    ├── Unreadable                     a file that the caller named cannot be read; has its `path`; also an `OSError`
    │   └── NoSuchFile                 there is no file of this name; also a `FileNotFoundError`
    ├── ConnectionRefused              a broker closes the connection instead of answering
    │   └── MalformedRequest           the bytes of a request do not follow Kafka's protocol
    ├── BrokerUnreachable              no answer came from a broker; has its `address`
    ├── CannotJoin                     a broker cannot be a member of its cluster
    ├── RequestFailed                  a broker refuses a request; has Kafka's error `code`
    └── InvalidInput                   the caller asked for something that cannot be expressed; also a `ValueError`
        ├── WrongCall                  a call in the form of another Kafka client; also a `TypeError`
        ├── InvalidConfig              a configuration has a name or value that Kafka does not accept
        ├── RecordTooLarge             a record is too large for any batch of this producer
        ├── MissingPartitions          a query names topics or partitions that do not exist
        └── SparkTooOld                the Spark that runs lacks what is asked for; has the version that is needed

Exceptions carry data in fields; `str()` tells a person what is wrong and where. Every `LogError` has `code`, Kafka's
error code. A torn tail (an incomplete last batch) is an error only if the caller asks for that very batch.

Built-in exceptions mean what they mean elsewhere: `OSError` comes from the file system, and `TimeoutError` from waiting
for a `SendFuture` for too long.
"""

from __future__ import annotations

from octavo.errors.client_errors import (
    ConsumerClosed,
    ConsumerError,
    CoordinatorRefused,
    DeserializationFailed,
    MemberFenced,
    MetadataTooLarge,
    NoOffset,
    ProducerClosed,
    ProducerFenced,
    SendTimedOut,
    TransactionAborted,
    TransactionFailed,
    TransactionIsEnding,
    UnknownProducer,
    WokenUp,
    WrongGroup,
    WrongTimeout,
    WrongTransactionOrder,
    WrongTransactionState,
)
from octavo.errors.format_errors import (
    BadCompression,
    BadLength,
    BadRecord,
    BadVarint,
    ChecksumMismatch,
    Corrupt,
    CorruptFile,
    FormatError,
    LimitExceeded,
    Truncated,
    Unsupported,
)
from octavo.errors.invalid_input import (
    InvalidConfig,
    InvalidInput,
    MissingPartitions,
    NoSuchFile,
    RecordTooLarge,
    SparkTooOld,
    Unreadable,
    WrongCall,
)
from octavo.errors.log_errors import (
    AppendRefused,
    BadDirectory,
    BadPolicy,
    Closed,
    CommitPending,
    CommitUnresolved,
    CompactionAborted,
    DataLoss,
    DirectoryLocked,
    LockLost,
    LogError,
    NoSegments,
    NotReady,
    OffsetOutOfRange,
    OthersDecide,
    PolicyViolation,
    RecordError,
    TopicExists,
    UnknownPartition,
    WouldLoseRecords,
    WrongProcess,
)
from octavo.errors.protocol_errors import (
    BrokerUnreachable,
    CannotJoin,
    ConnectionRefused,
    MalformedRequest,
    RequestFailed,
)
from octavo.errors.root import (
    ErrorCode,
    OctavoError,
)
from octavo.errors.table_errors import (
    BadTable,
    ExportConflict,
    TableError,
)

__all__ = [
    "OctavoError",
    "FormatError",
    "Truncated",
    "Corrupt",
    "ChecksumMismatch",
    "BadLength",
    "BadVarint",
    "BadRecord",
    "BadCompression",
    "CorruptFile",
    "LimitExceeded",
    "Unsupported",
    "LogError",
    "OffsetOutOfRange",
    "AppendRefused",
    "UnknownPartition",
    "NotReady",
    "TopicExists",
    "PolicyViolation",
    "BadPolicy",
    "CompactionAborted",
    "BadDirectory",
    "OthersDecide",
    "NoSegments",
    "DataLoss",
    "CommitUnresolved",
    "CommitPending",
    "WouldLoseRecords",
    "DirectoryLocked",
    "LockLost",
    "WrongProcess",
    "Closed",
    "ProducerClosed",
    "ConnectionRefused",
    "ConsumerClosed",
    "SendTimedOut",
    "TransactionAborted",
    "TransactionFailed",
    "WrongTransactionOrder",
    "ConsumerError",
    "NoOffset",
    "DeserializationFailed",
    "WokenUp",
    "CoordinatorRefused",
    "ProducerFenced",
    "UnknownProducer",
    "WrongTransactionState",
    "TransactionIsEnding",
    "WrongTimeout",
    "WrongGroup",
    "MemberFenced",
    "MalformedRequest",
    "BrokerUnreachable",
    "CannotJoin",
    "RequestFailed",
    "MetadataTooLarge",
    "TableError",
    "BadTable",
    "ExportConflict",
    "Unreadable",
    "NoSuchFile",
    "InvalidInput",
    "WrongCall",
    "InvalidConfig",
    "RecordTooLarge",
    "MissingPartitions",
    "SparkTooOld",
    "ErrorCode",
    "RecordError",
]

for _name in __all__:  # so tracebacks, pickles and the API reference name this module
    globals()[_name].__module__ = __name__
