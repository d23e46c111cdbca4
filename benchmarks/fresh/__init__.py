"""Programs that are run in a process of their own; each prints one JSON object."""

# A batch of one record, key "key" and value "value", as Apache Kafka writes it.
BATCH = bytes.fromhex(
    "000000000000000000000040ffffffff02db5e9cdd0000000000000000018bcfe568000000018bcf"
    "e56800ffffffffffffffffffffffffffff000000011c000000066b65790a76616c756500"
)
