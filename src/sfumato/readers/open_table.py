"""Opening a table: the one door for paths, data frames, relations and Spark."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import InputError
from sfumato.readers.locations import PACKED, SPARK, is_address, parse
from sfumato.readers.pushdown import GroupingSource, PushdownTable
from sfumato.readers.source import OpenedTable, Source
from sfumato.readers.source_table import SourceTable, require_columns
from sfumato.schema import Marginal, Schema
from sfumato.schema.files import require_file

if TYPE_CHECKING:
    from sfumato.readers.spark.frames import SparkFrame

_CSV: Final = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
_PARQUET: Final = (".parquet", ".pq")
_JSON: Final = (".json", ".jsonl", ".ndjson")
_SQLITE: Final = (".sqlite", ".sqlite3", ".db")


def open_table(
    source: Any, schema: Schema, *, encoding: str = "utf-8", delimiter: str | None = None
) -> OpenedTable:
    """A table from a path, a database, a data frame, a DuckDB relation or Spark.

    No row is read yet, only the names of the columns. Columns that the schema does not name are
    never read.

    Args:
        source: a path (csv, tsv, parquet, json, jsonl; csv and json also with .gz or .zst; sqlite
            as ``file.db::table``), an address (``postgresql://user@host/database::schema.table``),
            a pandas, Polars or pyarrow frame, a DuckDB relation, or a Spark DataFrame or
            ``spark::`` before the name of a table or the path of Parquet files, which Spark reads.
        schema: the columns and their codes.
        encoding: of a CSV file, like ``latin-1``; by default the one that the schema names.
        delimiter: of a CSV file; by default the schema's, else taken from its header.

    Raises:
        StorageError: the file is not there or can't be read, or no server answers.
        TableError: a column is missing, or the format is not what the name says.
    """
    if is_spark(source):
        return _spark_table(source, schema, encoding, delimiter)
    if _is_csv(source):
        form = schema.file
        encoding = form.encoding if encoding == "utf-8" else encoding
        delimiter = form.delimiter if delimiter is None else delimiter
    rows = source_of(source, schema.names, encoding, delimiter, fields=schema.file.names)
    if isinstance(rows, GroupingSource):
        table: SourceTable = PushdownTable(schema, rows)
    else:
        table = SourceTable(schema, rows)
    table.require(schema.names)
    return table


def is_spark(source: Any) -> bool:
    """Whether Spark holds the rows, or is to read them."""
    if isinstance(source, str):
        return source.startswith(SPARK)
    return type(source).__module__.partition(".")[0] == "pyspark"


def spark_frame_of(source: Any) -> "SparkFrame":
    """What Spark holds, or is to read; Spark is loaded here and nowhere else."""
    try:
        from sfumato.readers.spark.frames import spark_frame
    except ModuleNotFoundError as error:
        raise InputError(
            f"reading Spark tables needs {error.name}, which is not installed. Install it with: "
            "pip install 'sfumato[spark]'"
        ) from None
    return spark_frame(source)


def source_of(
    source: Any,
    expected: Marginal,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    *,
    fields: Marginal = (),
) -> Source:
    """Where the rows come from: a path, an address, a data frame or a relation.

    ``expected`` names columns that will be read: they help to find the delimiter of a CSV file.
    ``fields`` names all fields of a CSV file without a header; other sources know their names.
    """
    if is_spark(source):
        raise InputError(
            "rows that Spark holds are not brought to this process one by one, as this would "
            "need. Give a schema (draft one from a public table or from the columns' "
            "documentation), or write the table to a file."
        )
    if isinstance(source, str) and is_address(source):
        return _from_server(source, expected, encoding, delimiter)
    if isinstance(source, str | PathLike):
        return _from_path(str(source), expected, encoding, delimiter, fields)
    return _from_memory(source)


def _spark_table(source: Any, schema: Schema, encoding: str, delimiter: str | None) -> OpenedTable:
    _refuse_csv_options("a Spark table", encoding, delimiter)
    frame = spark_frame_of(source)
    require_columns(frame.names(), schema.names, where=frame.where)
    from sfumato.readers.spark.table import SparkTable

    return SparkTable(schema, frame)


def _from_server(address: str, expected: Marginal, encoding: str, delimiter: str | None) -> Source:
    from sfumato.readers.postgres import PostgresTable

    parsed = parse(address)
    _refuse_csv_options(parsed.location, encoding, delimiter)
    table = PostgresTable(parsed)
    table.require_readable(expected)
    return table


def _from_path(
    text: str, expected: Marginal, encoding: str, delimiter: str | None, fields: Marginal
) -> Source:
    path, kind, inner = _kind(text)
    if kind not in _CSV:
        _refuse_csv_options(path.name, encoding, delimiter)
    require_file(path)
    if kind in _CSV:
        from sfumato.readers.csv import CsvFile

        return CsvFile(
            path=path, expected=expected, encoding=encoding, delimiter=delimiter, fields=fields
        )
    if kind in _PARQUET:
        from sfumato.readers.parquet import ParquetFile

        return ParquetFile(path)
    if kind in _JSON:
        from sfumato.readers.duckdb import JsonFile

        return JsonFile(path)
    from sfumato.readers.sqlite import SqliteTable

    return SqliteTable(path, inner)


def _is_csv(source: Any) -> bool:
    if not isinstance(source, str | PathLike) or is_address(str(source)):
        return False
    return _kind(str(source))[1] in _CSV


def _refuse_csv_options(name: str, encoding: str, delimiter: str | None) -> None:
    if encoding != "utf-8" or delimiter is not None:
        raise InputError(f"encoding and delimiter are for CSV files; {name} is none")


def _kind(text: str) -> tuple[Path, str, str | None]:
    """Path, suffix that names the format, and the name of a table inside the file."""
    file, mark, inner = text.rpartition("::")
    if mark and Path(file).suffix.lower() in _SQLITE:
        return Path(file), Path(file).suffix.lower(), inner
    path = Path(text)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] in [[end] for end in PACKED]
    kind = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    allowed = (*_CSV, *_JSON) if packed else (*_CSV, *_JSON, *_PARQUET, *_SQLITE)
    if kind not in allowed:
        raise InputError(
            f"can't tell the format of {text!r} from its name. A table ends in "
            f"{', '.join((*_CSV, *_PARQUET, *_JSON, *_SQLITE))}; CSV and JSON also in .gz and .zst"
        )
    return path, kind, None


def _from_memory(value: Any) -> Source:
    if type(value).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        from sfumato.readers.duckdb import as_relation

        if relation := as_relation(value):
            return relation
    from sfumato.readers.frames import as_frame

    return as_frame(value)
