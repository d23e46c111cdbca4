"""Programs that tests run as processes of their own: a process has one Spark, and these want another."""
