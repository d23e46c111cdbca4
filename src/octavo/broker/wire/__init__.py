"""The bytes of Kafka's wire protocol: frames, headers and messages. It knows no sockets and no logs."""
