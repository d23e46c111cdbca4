"""What a package provides that adds a format of values: a plug-in.

    class CsvFormat(ValueFormat):
        needs = ("schema",)

        def decoder(self, *, schema=None, schema_folder=None, message=None):
            return CsvDecoder(schema)          # a ValueDecoder whose `to_text` has "format": "csv"

    FORMAT = CsvFormat()

Its project file names the object in the entry point group `octavo.values`, under the name of the format:

    [project.entry-points."octavo.values"]
    csv = "octavo_csv:FORMAT"

Then `csv` is a format for `octavo dump`, for `octavo export`, for Spark (`valueFormat`) and for `value_decoder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from octavo.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.values.decoder import ValueDecoder

PARAMETERS: Final = ("schema", "schema_folder", "message")  # what can be told to the decoder of a format


class ValueFormat(ABC):
    """A format of values: how its decoders are made, and from what."""

    needs: ClassVar[tuple[str, ...]] = ()  # parameters that have to be given
    takes: ClassVar[tuple[str, ...]] = ()  # parameters that may be given as well
    has_binary_schema: ClassVar[bool] = False  # whether a schema file is no text, and its content comes in base64

    @abstractmethod
    def decoder(
        self, *, schema: str | None = None, schema_folder: str | None = None, message: str | None = None
    ) -> ValueDecoder:
        """Return a decoder. Those of the parameters are given that the format needs or takes.

        Raises `InvalidInput` if one of them is not well-formed.
        """

    def infer(self, values: pa.Array) -> ValueDecoder | None:
        """Return a decoder that fits a sample of values; None if these do not say enough about themselves."""
        return None if self.needs else self.decoder()

    def check(self, name: str, given: dict[str, str]) -> None:
        """Raise `InvalidInput` if a parameter is missing or superfluous. `name` is that of the format."""
        missing = [each for each in self.needs if each not in given]
        if missing:
            raise InvalidInput(f"values of the format {name} need {' and '.join(missing)}")
        superfluous = [each for each in given if each not in (*self.needs, *self.takes)]
        if superfluous:
            raise InvalidInput(f"values of the format {name} take no {' and no '.join(superfluous)}")
