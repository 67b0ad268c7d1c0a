"""What `create` is told: where the columns and first rows come from, and how the table is defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.acting import Permission, using
from lakehouse_platform.cli.options import KeyValue, Names
from lakehouse_platform.cli.progress import byte_progress
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:
    from lakehouse_platform.model.results import TableInfo
    from lakehouse_platform.services.table_work import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the columns come from: exactly one of the three.

    Attributes:
        schema_text: Text such as `id:Int32 not null,name:String`.
        csv: CSV file, which gives the rows too.
        parquet: Parquet file or pattern, which gives the rows too.
        infer: How much of the CSV file decides the types: sample or all.
        delimiter: What separates CSV fields; None to find out.
    """

    schema_text: str | None = None
    csv: str | None = None
    parquet: str | None = None
    infer: str | None = None
    delimiter: str | None = None

    def check(self) -> None:
        """Refuse contradictions.

        Raises:
            click.UsageError: Not exactly one source, or an option of another one.
        """
        if sum(source is not None for source in (self.schema_text, self.csv, self.parquet)) != 1:
            raise click.UsageError("Give exactly one of --schema, --from-csv and --from-parquet.")
        if self.csv is None and (self.infer or self.delimiter):
            raise click.UsageError("--infer and --delimiter go with --from-csv only.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """How the table is defined beside its columns."""

    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict[str, str])
    description: str = ""


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `Source`; the command takes them as `source`."""

    @click.option(
        "--schema", "schema_text", metavar="SCHEMA", help='Columns: "id:Int32 not null,name:String".'
    )
    @click.option("--from-csv", "csv", metavar="FILE", help="Columns and rows of a CSV file, gzipped or not.")
    @click.option("--from-parquet", "parquet", metavar="GLOB", help="Columns and rows of Parquet files.")
    @click.option(
        "--infer",
        type=click.Choice(["sample", "all"]),
        help="CSV types from the first 10 rows (a later value that does not fit is an error) or from all rows"
        "  [default: sample]",
    )
    @click.option(
        "--delimiter", metavar="CHAR", help="What separates CSV fields  [default: found in the file]"
    )
    @wraps(command)
    def with_source(
        *args: Any,
        schema_text: str | None,
        csv: str | None,
        parquet: str | None,
        infer: str | None,
        delimiter: str | None,
        **kwargs: Any,
    ) -> Any:
        source = Source(schema_text=schema_text, csv=csv, parquet=parquet, infer=infer, delimiter=delimiter)
        source.check()
        return command(*args, source=source, **kwargs)

    return with_source


def definition_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `Definition`; the command takes them as `definition`."""

    @click.option(
        "--primary-key", type=Names(), default=(), metavar="A[,B]", help="Columns that identify a row."
    )
    @click.option(
        "--partition-by", type=Names(), default=(), metavar="A[,B]", help="Columns to partition by."
    )
    @click.option(
        "--property", "pairs", type=KeyValue(), multiple=True, metavar="KEY=VALUE", help="Table property."
    )
    @click.option("--description", default="", metavar="TEXT", help="What the table holds.")
    @wraps(command)
    def with_definition(
        *args: Any,
        primary_key: tuple[str, ...],
        partition_by: tuple[str, ...],
        pairs: tuple[tuple[str, str], ...],
        description: str,
        **kwargs: Any,
    ) -> Any:
        definition = Definition(
            primary_key=primary_key,
            partition_by=partition_by,
            properties=dict(pairs),
            description=description,
        )
        return command(*args, definition=definition, **kwargs)

    return with_definition


def create_from(session: Session, target: str, source: Source, definition: Definition) -> TableInfo:
    """Create a table as told and return what it is now."""
    with using(session, target, Permission.CREATE_TABLE, "create") as use:
        info = _created(session, use.table, source, definition)
        use.note.row_count = info.rows
    return info


def _created(session: Session, table: Table, source: Source, definition: Definition) -> TableInfo:
    if source.schema_text is not None:
        from lakehouse_platform.model.schema import Schema

        return table.create(Schema.parse(source.schema_text), **asdict(definition)).info()
    from lakehouse_platform.services.files import FileForm, FileOptions, create_from_file

    file, form = (source.csv, FileForm.CSV) if source.csv else (source.parquet or "", FileForm.PARQUET)
    with byte_progress(session, f"Importing {file}") as on_progress:
        infer_all = source.infer == "all"
        options = FileOptions(delimiter=source.delimiter, infer_all=infer_all, on_progress=on_progress)
        create_from_file(table, file, form, options, **asdict(definition))
    return table.info()
