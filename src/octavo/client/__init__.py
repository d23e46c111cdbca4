"""A small client of Kafka's protocol, for the commands and for whatever else has to ask a broker.

It asks one request at a time and waits for the answer, of Octavo's broker and of any other that speaks the protocol.
"""
