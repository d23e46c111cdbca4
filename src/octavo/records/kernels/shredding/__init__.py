"""Kernels that turn many values into columns in one call.

tree.py      the columns: a tree of types, and where the values of each go
scalars.py   numbers, strings and times in JSON
skip.py      values of fields that nobody asked for
json.py      the kernel for JSON
"""
