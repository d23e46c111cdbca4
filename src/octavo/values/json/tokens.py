"""Read JSON token by token, as Spark's parser does: Jackson's `ReaderBasedJsonParser` with the options of `from_json`.

What Spark makes of text that is not JSON depends on where Jackson stops and how it goes on, so this follows its control
flow closely: names and values are read one token ahead, strings only when somebody asks for them, an error leaves the
position where Jackson leaves it. Single quotes, NaN and infinities are allowed.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from typing import Final, NoReturn

from octavo.errors import InvalidInput

MAX_DEPTH: Final = 1000  # Jackson's limits
MAX_NUMBER: Final = 1000
MAX_NAME: Final = 50_000
_MAX_ERROR_TOKEN: Final = 256


class Token(Enum):
    """The tokens of JSON. A field's name and its value are two tokens."""

    START_OBJECT = "{"
    END_OBJECT = "}"
    START_ARRAY = "["
    END_ARRAY = "]"
    NAME = "name"
    STRING = "string"
    INT = "int"
    FLOAT = "float"
    TRUE = "true"
    FALSE = "false"
    NULL = "null"


_NOT_FINITE: Final = {
    "NaN": "nan",
    "Infinity": "inf",
    "+INF": "inf",
    "+Infinity": "inf",
    "-INF": "-inf",
    "-Infinity": "-inf",
}
_ESCAPES: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "/": "/", "\\": "\\", "'": "'"}
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')  # what a string consists of, unless something special is in it
_PLAIN_APOSTROPHE: Final = re.compile(r"[^'\\\x00-\x1f]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_WORDS: Final = {"t": ("true", Token.TRUE), "f": ("false", Token.FALSE), "n": ("null", Token.NULL)}
_START: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART: Final = _START | {"Nd", "Mc", "Mn", "Cf"}
_BASE64: Final = {
    char: number for number, char in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}


class _Context:
    """An object or array that is open, or the root."""

    __slots__ = ("count", "kind", "name")

    def __init__(self, kind: str) -> None:
        self.kind = kind  # "{", "[" or "" for the root
        self.count = 0
        self.name: str | None = None


class TokenReader:
    """Reads the tokens of one text. `token` is the current one, None before the first and after the last."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._position = 0
        self.token: Token | None = None
        self._ahead: Token | None = None  # the value that belongs to the current name
        self._incomplete = False  # the current string has not been read yet
        self._string = ""
        self._contexts = [_Context("")]

    # ------------------------------------------------------------------------------------------------ for converters

    @property
    def name(self) -> str | None:
        """The name of the field that the current token belongs to."""
        if self.token in (Token.START_OBJECT, Token.START_ARRAY) and len(self._contexts) > 1:
            return self._contexts[-2].name
        return self._contexts[-1].name

    def text(self) -> str:
        """Return the text of the current token: of a string its content, of a number its digits.

        Raises `InvalidInput`.
        """
        if self._incomplete:
            self._incomplete = False
            self._string = self._read_string('"')
        if self.token in (Token.STRING, Token.INT, Token.FLOAT):
            return self._string
        if self.token is Token.NAME:
            return self.name or ""
        return "" if self.token is None else self.token.value

    def next(self) -> Token | None:
        """Go to the next token. Raises `InvalidInput`."""
        if self.token is Token.NAME:
            value, self._ahead = self._ahead, None
            self._open(value)
            self.token = value
            return value
        if self._incomplete:
            self._incomplete = False
            self._read_string('"')
        char = self._skip_space()
        if char == "":
            if self._contexts[-1].kind:
                self._fail("it ends inside of an object or array")
            self.token = None
            return None
        if char in "}]":
            return self._close(char)
        context = self._contexts[-1]
        context.count += 1
        if context.kind and context.count > 1:
            char = self._after_comma(char)
        if context.kind != "{":
            value = self._value(char)
            self._open(value)
            self.token = value
            return value
        context.name = self._read_name(char)
        self.token = Token.NAME
        self._ahead = self._value(self._after_colon())
        return self.token

    def skip_children(self) -> None:
        """If the current token opens an object or array, go to its end. Raises `InvalidInput`."""
        if self.token not in (Token.START_OBJECT, Token.START_ARRAY):
            return
        depth = 1
        while depth:
            token = self.next()
            if token is None:
                if self._contexts[-1].kind:
                    self._fail("it ends inside of an object or array")
                return
            depth += (token in (Token.START_OBJECT, Token.START_ARRAY)) - (token in (Token.END_OBJECT, Token.END_ARRAY))

    def binary(self) -> bytes:
        """Return the bytes that the current string has in base64. Raises `InvalidInput`."""
        if not self._incomplete:  # it was in single quotes, and is read already
            inner = TokenReader(self._string + '"')
            return inner._read_base64()
        decoded = self._read_base64()
        self._incomplete = False
        return decoded

    # -------------------------------------------------------------------------------------------------------- inside

    def _fail(self, reason: str) -> NoReturn:
        raise InvalidInput(f"not JSON at character {self._position}: {reason}")

    def _open(self, token: Token | None) -> None:
        if token is Token.START_OBJECT or token is Token.START_ARRAY:
            if len(self._contexts) > MAX_DEPTH:
                self._fail(f"it is nested more than {MAX_DEPTH} levels deep")
            self._contexts.append(_Context(token.value))

    def _close(self, char: str) -> Token:
        if self._contexts[-1].kind != ("{" if char == "}" else "["):
            self._fail(f"{char} closes nothing that is open")
        self._contexts.pop()
        self.token = Token.END_OBJECT if char == "}" else Token.END_ARRAY
        return self.token

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            self._fail("it ends too early")
        self._position += 1
        return char

    def _skip_space(self) -> str:
        """Return the next character that is no space, and go past it; nothing at the end of the text."""
        found = _SPACE.match(self._text, self._position)
        assert found is not None  # it matches the empty text
        self._position = found.end()
        char = self._peek()
        self._position += len(char)
        if char == "/" or (char and char < " "):
            self._fail(f"there is {char!r} between tokens")
        return char

    def _after_comma(self, char: str) -> str:
        if char != ",":
            self._fail(f"there is {char!r} instead of a comma")
        return self._skip_space() or self._fail("it ends after a comma")

    def _after_colon(self) -> str:
        char = self._skip_space()
        if char != ":":
            self._fail(f"there is {char!r} instead of a colon")
        return self._skip_space() or self._fail("it ends after a colon")

    def _value(self, char: str) -> Token:
        if char == '"':
            self._incomplete = True
            return Token.STRING
        if char in "[{":
            return Token(char)
        if char in _WORDS:
            word, token = _WORDS[char]
            self._match(word, 1)
            return token
        if char == "-" or ("0" <= char <= "9"):
            return self._number(char)
        return self._odd_value(char)

    def _odd_value(self, char: str) -> Token:
        match char:
            case "'":
                self._string = self._read_string("'")
                return Token.STRING
            case "N":
                return self._not_finite("NaN", 1)
            case "I":
                return self._not_finite("Infinity", 1)
            case "+":
                return self._after_sign(self._take(), "+")
        if unicodedata.category(char) in _START and char <= "\uffff":
            self._unknown_word(1)
        return self._fail(f"there is {char!r} instead of a value")

    def _match(self, word: str, position: int) -> None:
        """Read the rest of a word, from a position in it."""
        for number in range(position, len(word)):
            if self._peek() != word[number]:
                self._unknown_word(number)
            self._position += 1
        char = self._peek()
        if char >= "0" and char not in "]}" and _is_part(char):
            self._unknown_word(len(word))

    def _unknown_word(self, length: int) -> NoReturn:
        while _is_part(self._peek()):
            self._position += 1
            length += 1
            if length >= _MAX_ERROR_TOKEN:
                break
        self._fail("there is a word that is no value")

    def _not_finite(self, word: str, position: int) -> Token:
        self._match(word, position)
        self._string = word
        return Token.FLOAT

    def _after_sign(self, char: str, sign: str) -> Token:
        """Read a number after its sign, which is no digit."""
        if char == "I":
            char = self._take()
            if char == "N":
                return self._not_finite(f"{sign}INF", 3)
            if char == "n":
                return self._not_finite(f"{sign}Infinity", 3)
        return self._fail(f"there is {char!r} instead of a digit")

    def _number(self, char: str) -> Token:
        start = self._position - 1
        if char == "-":
            char = self._take()
            if not "0" <= char <= "9":
                return self._after_sign(char, "-")
        found = _NUMBER.match(self._text, start)
        assert found is not None  # at least one digit
        whole, fraction, exponent = found.groups()
        self._position = found.end()
        rest = self._peek()
        if whole == "0" and not fraction and not exponent and "0" <= rest <= "9":
            self._fail("a number begins with 0")
        if not exponent and rest and ((rest == "." and not fraction) or rest in "eE"):
            self._fail_in_number(start + len(found[0]), whole, bool(fraction), rest)
        digits = (
            len(found[0])
            - found[0].startswith("-")
            - bool(fraction)
            - bool(exponent)
            - ("e-" in found[0].lower() or "e+" in found[0].lower())
        )
        if digits > MAX_NUMBER:
            self._fail(f"a number has more than {MAX_NUMBER} digits")
        self._string = found[0]
        return Token.FLOAT if fraction or exponent else Token.INT

    def _fail_in_number(self, at: int, whole: str, has_fraction: bool, char: str) -> NoReturn:
        """A point or an exponent has no digits: fail, at the position where Jackson gives up."""
        after = at + 1
        if char != "." and self._text[after : after + 1] in ("+", "-"):
            after += 1
        if whole == "0":
            self._position = min(after + 1, len(self._text))  # this way through Jackson reads one character more
        elif has_fraction:
            self._position = self._text.rindex(".", 0, at) + 1
        else:
            self._position = at + 1
        self._fail("a number ends too early")

    def _read_name(self, char: str) -> str:
        if char not in "\"'":
            self._fail(f"there is {char!r} instead of a name in quotes")
        name = self._read_string(char)
        if len(name) > MAX_NAME:
            self._fail(f"a name has more than {MAX_NAME} characters")
        return name

    def _read_string(self, quote: str) -> str:
        plain = _PLAIN if quote == '"' else _PLAIN_APOSTROPHE
        parts = []
        while True:
            found = plain.match(self._text, self._position)
            assert found is not None  # it matches the empty text
            parts.append(found[0])
            self._position = found.end()
            char = self._take()
            if char == quote:
                return _pairs_joined(parts)
            if char != "\\":
                self._fail("there is a control character in a string")
            parts.append(self._read_escape())

    def _read_escape(self) -> str:
        char = self._take()
        if char != "u":
            return _ESCAPES.get(char) or self._fail(f"there is no escape \\{char}")
        code = 0
        for _ in range(4):
            digit = self._take()
            if digit not in "0123456789abcdefABCDEF":
                self._fail(f"{digit!r} is no hexadecimal digit")
            code = code * 16 + int(digit, 16)
        return chr(code)

    def _read_base64(self) -> bytes:
        """Read the rest of a string as base64. White space is allowed between groups of four characters."""
        decoded = bytearray()
        while True:
            char = self._take()
            while char <= " ":
                char = self._take()
            if char == '"':
                return bytes(decoded)
            first = self._base64_bits(char, may_be_space=True)
            if first < 0:
                continue
            bits = first << 6 | self._base64_bits(self._take())
            char = self._take()
            if char == '"':
                self._position -= 1
                self._fail("base64 without its padding")
            if self._is_padding(char):
                if not self._is_padding(self._take()):
                    self._fail("base64 with half of its padding")
                decoded.append(bits >> 4 & 0xFF)
                continue
            bits = bits << 6 | self._base64_bits(char)
            char = self._take()
            if char == '"':
                self._position -= 1
                self._fail("base64 without its padding")
            if self._is_padding(char):
                decoded += (bits >> 2 & 0xFFFF).to_bytes(2, "big")
                continue
            decoded += (bits << 6 | self._base64_bits(char)).to_bytes(3, "big")

    def _is_padding(self, char: str) -> bool:
        return char == "="

    def _base64_bits(self, char: str, *, may_be_space: bool = False) -> int:
        if char == "\\":
            char = self._read_escape()
            if may_be_space and char <= " ":
                return -1
        bits = _BASE64.get(char)
        if bits is None:
            self._fail(f"{char!r} is not base64")
        return bits


def _pairs_joined(parts: list[str]) -> str:
    """Return the text of the parts. Two escapes that are a pair of surrogates become one character."""
    text = "".join(parts)
    if len(parts) == 1:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _is_part(char: str) -> bool:
    """Whether a character can be part of an identifier in Java."""
    if not char or char > "\uffff":
        return False
    return unicodedata.category(char) in _PART or char <= "\x08" or "\x0e" <= char <= "\x1b" or "\x7f" <= char <= "\x9f"


def as_float(text: str) -> float:
    """Return the number that the text of a token stands for."""
    return float(_NOT_FINITE.get(text, text))


def is_finite(text: str) -> bool:
    """Whether the text of a number's token has digits: not NaN or infinite."""
    return text not in _NOT_FINITE
