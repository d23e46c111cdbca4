"""Has failed assertions of scenarios say what was different, as those of tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.clients.scenarios")
