"""Names and maps behave as in Java."""

from __future__ import annotations

import pytest

from octavo.inspect.kafka_text.java_names import HashMap, JavaFile, hash_code, parse_int, parse_long
from octavo.inspect.kafka_text.throwables import Throwable


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("-7", -7), ("+007", 7), ("-9223372036854775808", -(2**63))])
def test_numbers_are_parsed(text: str, number: int) -> None:
    assert parse_long(text) == number


@pytest.mark.parametrize("text", ["", "-", "+", "1.0", "9223372036854775808", "1_0", " 1"])
def test_what_is_no_number_is_refused_in_javas_words(text: str) -> None:
    with pytest.raises(Throwable) as raised:
        parse_long(text)
    assert str(raised.value) == f'java.lang.NumberFormatException: For input string: "{text}"'


def test_an_int_has_32_bits() -> None:
    assert parse_int("2147483647") == 2**31 - 1
    with pytest.raises(Throwable):
        parse_int("2147483648")


def test_strings_have_the_hashes_of_java() -> None:
    assert hash_code("hello") == 99162322
    assert hash_code("\N{GRINNING FACE}") == 0xD83D * 31 + 0xDE00


def order(*keys: str) -> str:
    hashes: HashMap[None] = HashMap()
    for key in keys:
        hashes.compute_if_absent(key, lambda: None)
    return " ".join(key for key, _ in hashes.items())


def test_a_map_iterates_by_bucket_and_the_newest_first() -> None:
    assert order("b", "a") == "a b"
    assert hash_code("Aa") == hash_code("BB")
    assert order("Aa", "BB") == "BB Aa"


def test_a_map_grows_when_it_is_asked_for_a_key_that_it_has_already() -> None:
    """ "p" is in the first of 16 buckets, and "h" in the eighth of 32."""
    assert order(*"hijklmnopqrst") == "p q r s t h i j k l m n o"
    assert order(*"hijklmnopqrst", "t") == "h i j k l m n o p q r s t"


def test_paths_lose_only_superfluous_slashes() -> None:
    assert JavaFile("//a//./b/").path == "/a/./b"
    assert JavaFile("/").path == "/"
    assert JavaFile("a.b/c").suffix == ""
    assert JavaFile("/x/5.log").beside(".index").path == "/x/5.index"
