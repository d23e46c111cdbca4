"""One Chromium for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser
from tests.kafka.releases import do_without
from tests.machines.programs import CHROMIUM, absent, find


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A running Chromium."""
    program = find(CHROMIUM)
    if program is None:
        do_without(absent(CHROMIUM))
    browser = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()
