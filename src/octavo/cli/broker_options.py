"""The options of commands that ask a broker."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from octavo.client.cluster import Cluster

_DEFAULT: Final = "127.0.0.1:9092"


def add_broker_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which cluster is asked."""
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=_DEFAULT,
        help=f"a broker of the cluster, or several with commas between them (default: {_DEFAULT})",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="for how long to try before it fails (default: 30)",
    )


def given_cluster(arguments: argparse.Namespace) -> Cluster:
    """Return the cluster that the options name."""
    from octavo.client.cluster import Cluster

    return Cluster(arguments.bootstrap_server, patience_s=arguments.timeout)
