"""Decode JSON values as Spark's `from_json` does, in its mode PERMISSIVE.

decoder.py     the decoder
rows.py        the exact way, value by value: what Spark makes of JSON tokens
tokens.py      the tokens of Spark's JSON parser, with all that it accepts, and how it goes on after an error
times.py       dates and timestamps as Spark reads them
"""
