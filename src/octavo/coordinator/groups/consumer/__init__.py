"""Groups of the consumer protocol (KIP-848), to whose members the coordinator assigns partitions."""
