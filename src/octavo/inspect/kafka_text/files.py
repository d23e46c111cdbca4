"""Print several files, each as its kind demands, and then what was found in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from octavo.errors import LimitExceeded
from octavo.inspect.kafka_text.decoding import parser_of
from octavo.inspect.kafka_text.index_text import print_index, print_time_index
from octavo.inspect.kafka_text.java_names import JavaFile
from octavo.inspect.kafka_text.log_text import LogText
from octavo.inspect.kafka_text.options import TextOptions
from octavo.inspect.kafka_text.output import Output
from octavo.inspect.kafka_text.reports import Reports
from octavo.inspect.kafka_text.run import Run
from octavo.inspect.kafka_text.state_text import print_producer_snapshot, print_transaction_index
from octavo.inspect.kafka_text.throwables import Throwable


def print_files(files: Sequence[str], options: TextOptions, out: BinaryIO, err: BinaryIO) -> bool:
    """Print `files`, as they were given, and return whether damage was met.

    Where Kafka's tool ends with an exception, its text goes to `err` without the lines of the stack, the rest of the
    files is not printed, and True is returned. Raises `Unreadable` for a file that cannot be opened, after everything
    that is printed before it. Neither stream is closed; `out` is flushed.
    """
    output = Output(out, err)
    run = Run(options, output, Reports())
    file = JavaFile("")
    try:
        for name in files:
            file = JavaFile(name)
            output.line(f"Dumping {file}")
            _print_file(run, file)
        run.reports.print(output)
    except Throwable as error:
        output.is_damaged = True
        output.error(error.report())
    except LimitExceeded as error:
        output.is_damaged = True
        output.error(f"octavo: {file}: {error}")
    finally:
        output.flush()
        out.flush()
    return output.is_damaged


def _print_file(run: Run, file: JavaFile) -> None:
    match file.suffix:
        case ".log" | ".checkpoint":
            LogText(run, parser_of(run.options)).print(file)
        case ".index":
            print_index(run, file)
        case ".timeindex":
            print_time_index(run, file)
        case ".snapshot":
            print_producer_snapshot(run.output, file)
        case ".txnindex":
            print_transaction_index(run.output, file)
        case _:
            run.output.error(f"Ignoring unknown file {file}")
