"""What the data source does, without a Spark that calls it: `tests/spark` has those."""
