"""Check every file of a data directory, by code that the writer does not use.

check_partition    the problems of one partition folder; a Spark task can call it
check_directory    the problems of a data directory's own files
all_rules          what is checked
"""

from __future__ import annotations

from octavo.inspect.verify.directory import check_directory, partition_folders
from octavo.inspect.verify.partition import check_partition
from octavo.inspect.verify.problem import Problem, Rule, all_rules
from octavo.inspect.verify.single_file import check_file

__all__ = ["Problem", "Rule", "all_rules", "check_directory", "check_file", "check_partition", "partition_folders"]
