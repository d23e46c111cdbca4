"""Decode Avro values.

decoder.py   the decoder: one schema, or a registry's wire format and a folder of schemas
schema.py    schemas: how they are read, and which columns they have
wire.py      from the writer's and the reader's schema to the table that the kernel follows
"""
