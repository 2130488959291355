"""Values in the types that Arrow's functions take, and text with the digits that a value needs.

A column of decimals, or of times, has one scale for all rows, and tools take it from the longest
value. What a row says must not depend on the others: the zeros that a scale adds are not read.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

_ZEROS: Final = r"(?:\.0+|(\.[0-9]*[1-9])0+)(Z|[+-][0-9:]+)?$"
"""At the end of a number or time, before its offset."""


def plain(values: pa.Array) -> pa.Array:
    """The same values without views, short decimals and extensions that stand for a plain type.

    >>> plain(pa.array(["a"], pa.string_view())).type
    DataType(string)
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        entries = values.dictionary
        found = plain(entries)
        return values if found is entries else _with_entries(values, found)
    if pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name in _STANDS_FOR:
        return plain(_STANDS_FOR[kind.extension_name](values))
    return values


def extension(kind: pa.DataType) -> str | None:
    """The name of the extension type that values, or the entries of a dictionary, have."""
    entries = kind.value_type if pa.types.is_dictionary(kind) else kind
    return entries.extension_name if isinstance(entries, pa.BaseExtensionType) else None


def has_scale(kind: pa.DataType) -> bool:
    """Whether Arrow writes all values of this type with the same number of digits."""
    return bool(pa.types.is_decimal(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def scaled_texts(values: pa.Array) -> pa.Array:
    """Values of a type that has a scale as text, each as if it were alone.

    >>> scaled_texts(pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3")])).to_pylist()
    ['1.5', '2.25', '3']
    """
    texts = values.cast(pa.string())
    if pa.types.is_decimal(values.type) and pc.any(pc.match_substring(texts, "E")).as_py():
        texts = pa.array(map(_without_exponent, texts.to_pylist()), pa.string())
    return shortened(texts)


def shortened(texts: pa.Array) -> pa.Array:
    """Texts of numbers and times without zeros at their end: 1.50 is 1.5, and 2.00 is 2."""
    return pc.replace_substring_regex(texts, pattern=_ZEROS, replacement=r"\1\2")


def without_zeros(texts: pa.Array) -> pa.Array:
    """Texts, those of whole numbers without a point: tools write 41.0 where others are missing.

    >>> without_zeros(pa.array(["41.0", "1.50", "v1.0"])).to_pylist()
    ['41', '1.50', 'v1.0']
    """
    return pc.replace_substring_regex(texts, pattern=r"^(-?[0-9]+)\.0+$", replacement=r"\1")


def _with_entries(values: pa.Array, entries: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(values.indices, entries)


def _without_exponent(text: str | None) -> str | None:
    return None if text is None else f"{Decimal(text):f}"


def _uuid_texts(values: Any) -> pa.Array:
    """As PostgreSQL and DuckDB write them."""
    found = (None if each is None else str(UUID(bytes=each)) for each in values.storage.to_pylist())
    return pa.array(found, pa.string())


_STANDS_FOR: Final[Mapping[str, Callable[[Any], pa.Array]]] = {
    "arrow.bool8": lambda values: values.storage.cast(pa.bool_()),
    "arrow.json": lambda values: values.storage,
    "arrow.uuid": _uuid_texts,
}
