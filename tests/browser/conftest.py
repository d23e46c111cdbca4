"""One Chromium for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import INSTALL, Browser, find_chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A running Chromium."""
    program = find_chromium()
    if program is None:
        pytest.fail(f"the pages are looked at in Chromium, which is not installed: {INSTALL}")
    browser = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()
