"""A table becomes logs again, with the offsets that its rows have.

listing, source_table    which files a table has
runs                     which offsets of which partitions are in a file
planning                 which task writes which offsets
merging, columns         the rows of a partition, in the order of their offsets
staging                  rows become batches in the staging folder
committing               what is staged is appended to the logs
"""
