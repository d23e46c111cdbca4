"""Run the `octavo` command as `python -m octavo.cli`."""

from __future__ import annotations

import sys

from octavo.cli import main

sys.exit(main())
