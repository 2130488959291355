"""What a value of a column looks like, for messages that may not show the value itself."""

from sfumato.schema.columns import Boolean, Column, Date, DateTime, Integer, Number


def expected(column: Column) -> str:
    """The end of "the value is not ...".

    >>> expected(Boolean(name="member", texts=("no", "yes")))
    "'no' or 'yes'"
    """
    if isinstance(column, Boolean):
        false, true = column.texts or (None, None)
        return "true or false (also yes/no, 1/0)" if false is None else f"{false!r} or {true!r}"
    if isinstance(column, Integer):
        return "a whole number, written like 1400"
    if isinstance(column, Number):
        return "a finite number"
    if isinstance(column, Date):
        return "a date like 2020-01-31" if column.format is None else f"a date as {column.format}"
    if isinstance(column, DateTime):
        return _moment(column)
    return "one of the declared values"


def _moment(column: DateTime) -> str:
    example = "2020-01-31T23:59:59" + ("" if column.zone is None else "Z")
    written = f"like {example}" if column.format is None else f"as {column.format}"
    offset = "an offset, because a" if column.zone is not None else "no offset, because no"
    return f"a time written {written}, with {offset} zone is declared"
