"""The page about settings lists what the code does."""

from __future__ import annotations

import re

import pytest

from octavo.broker.config import HONOURED, read_settings
from octavo.broker.kafka_settings import KAFKA_SETTINGS
from octavo.broker.member.config import MEMBER_NAMES
from octavo.broker.refused_settings import may_be_refused
from octavo.errors import InvalidConfig
from tests.unit.broker.settings_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_setting_of_kafka_is_of_the_kind_that_the_page_says() -> None:
    without = set(re.findall(r"^- `(.*)`$", page().partition("## Without effect")[2], re.MULTILINE))
    for name in KAFKA_SETTINGS - HONOURED - MEMBER_NAMES:
        if may_be_refused(name):
            assert name not in without
            with pytest.raises(InvalidConfig, match=f"^{re.escape(name)}: "):
                read_settings({name: "something"})
        else:
            assert (name in without) != (name in MEMBER_NAMES)  # those of a member have a list of their own
            assert read_settings({name: "something"}).warnings == [f"settings without effect: {name}"]
