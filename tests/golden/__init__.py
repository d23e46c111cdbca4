"""Small files that Apache Kafka wrote, and beside each a JSON with what Apache Kafka says is in it.

`files.py` reads them (no Kafka is needed for that), `cases.py` says what they are, `make golden` writes them
again.
"""
