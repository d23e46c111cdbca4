"""Pages to look at in a browser: one file each, which needs no network and opens from the disk.

    document.py        the frame of a page: title, styles, script, and what the page may do
    writing.py         where a page may be written to
    explain_page.py    every byte of a batch
    report_page.py     a data directory: its charts, and with `report_tables.py` its tables
    charts.py          bars, columns and lanes of time
    numbers.py         sizes, counts and times as people read them

Everything that comes from data is escaped. A page may run only its own script (its content security policy has the
script's hash), so bytes that look like a script stay bytes.
"""

from __future__ import annotations
