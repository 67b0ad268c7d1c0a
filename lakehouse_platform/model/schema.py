"""Schemas as people write them: fields with type texts such as `Int32`, `Decimal(10,2)`, `List<String>`.

The type texts, any case:

| text | Arrow |
|---|---|
| Int8 Int16 Int32 Int64 (int, integer, bigint, long) | int8 … int64 |
| Float32 Float64 (float, double) | float32, float64 |
| String (utf8, text, varchar) | string |
| Boolean (bool) | bool |
| Date32 (date) | date32 |
| Timestamp | timestamp in microseconds, UTC |
| TimestampNtz | timestamp in microseconds, without a zone |
| Binary | binary |
| Decimal(p,s) | decimal128(p, s), 1 ≤ p ≤ 38 |
| List<T>, Struct<name:T,…>, Map<K,V> | list, struct, map |

A name that holds one of `,:<>()` or a backtick, or begins or ends with a blank, is written in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_platform.errors import InvalidSchemaTextError

_PRIMITIVES: dict[str, pa.DataType] = {
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "String": pa.string(),
    "Boolean": pa.bool_(),
    "Date32": pa.date32(),
    "Timestamp": pa.timestamp("us", "UTC"),
    "TimestampNtz": pa.timestamp("us"),
    "Binary": pa.binary(),
}
_ALIASES = {
    "tinyint": "Int8", "smallint": "Int16", "int": "Int32", "integer": "Int32", "bigint": "Int64", "long": "Int64",
    "float": "Float32", "real": "Float32", "double": "Float64", "utf8": "String", "text": "String",
    "varchar": "String", "bool": "Boolean", "date": "Date32", "timestamp_ntz": "TimestampNtz", "bytes": "Binary",
}  # fmt: skip
_BY_LOWER = {name.lower(): name for name in _PRIMITIVES} | _ALIASES
_NAME_OF = {data_type: name for name, data_type in _PRIMITIVES.items()}
_DECIMAL = re.compile(r"decimal(?:128)?\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_NESTED = re.compile(r"(list|struct|map)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_NOT_NULL = re.compile(r"\s+not\s+null\s*$", re.IGNORECASE)
_NEEDS_BACKTICKS = re.compile(r"[,:<>()`]|^\s|\s$")
_MAX_NESTING = 32  # far beyond real tables, far below Python's recursion limit


@dataclass(frozen=True, slots=True)
class Field:
    """One column.

    Attributes:
        name: Its name, case-sensitive.
        data_type: Its type text, see the module's table.
        nullable: Whether it may be NULL.
    """

    name: str
    data_type: str
    nullable: bool = True


# Wider than any table that people write down; a table of 20 000 columns takes the engine minutes.
_MOST_COLUMNS = 4096


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in order, and optionally its primary key.

    Attributes:
        fields: At least one column; names are unique whatever their case.
        primary_key: Column names of the declared key; empty for none.
    """

    fields: Sequence[Field]
    primary_key: Sequence[str] = ()

    @classmethod
    def parse(cls, text: str, primary_key: Sequence[str] = ()) -> Schema:
        """Return the schema that a text such as `id:Int32 not null,name:String` describes.

        Raises:
            InvalidSchemaTextError: The text is empty, a column has no type, or a type is unknown.
        """
        parts = [part.strip() for part in _split(text)]
        if not any(parts):
            raise InvalidSchemaTextError(
                "The schema is empty: write it like 'id:Int32 not null,name:String'.", schema=text
            )
        if len(parts) > _MOST_COLUMNS:
            raise InvalidSchemaTextError(
                f"The schema has {len(parts)} columns; at most {_MOST_COLUMNS} can be written as a text."
            )
        return cls(tuple(_parse_field(part, text) for part in parts), tuple(primary_key))

    @classmethod
    def from_arrow(cls, schema: pa.Schema, primary_key: Sequence[str] = ()) -> Schema:
        """Return an Arrow schema in our type texts.

        Raises:
            InvalidSchemaTextError: A column has a type that a table cannot hold.
        """
        fields = (Field(column.name, type_text(column.type), column.nullable) for column in schema)
        return cls(tuple(fields), tuple(primary_key))

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema; key columns are NOT NULL.

        Raises:
            InvalidSchemaTextError: No column, an empty or repeated name, an unknown type, or a key without its column.
        """
        self._check_names()
        key = set(self.primary_key)
        return pa.schema(
            [pa.field(f.name, arrow_type(f.data_type), f.nullable and f.name not in key) for f in self.fields]
        )

    def _check_names(self) -> None:
        names = [field.name for field in self.fields]
        if not names:
            raise InvalidSchemaTextError("A table needs at least one column.")
        lowered = [name.lower() for name in names]
        refuse_nul(names)
        for name in names:
            if not name or lowered.count(name.lower()) > 1:
                raise InvalidSchemaTextError(
                    f"Column name {name!r} is empty or repeated; names must differ in more than case.",
                    column=name,
                )
        for name in self.primary_key:
            if name not in names:
                raise InvalidSchemaTextError(
                    f"Primary key column {name!r} is not in the schema; it has {', '.join(names)}.",
                    column=name,
                )


def refuse_nul(names: Iterable[str]) -> None:
    """Refuse names of columns with a NUL character: the engine takes them through C, where they would end there.

    Raises:
        InvalidSchemaTextError: One has it.
    """
    for name in names:
        if "\0" in name:
            raise InvalidSchemaTextError(f"Column name {name!r} holds a NUL character: leave it out.")


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type text.

    Raises:
        InvalidSchemaTextError: The text names no type a table can hold.
    """
    return _arrow_type(text, 0)


def type_text(data_type: pa.DataType) -> str:
    """Return our text of an Arrow type; the inverse of `arrow_type`.

    Raises:
        InvalidSchemaTextError: A table cannot hold the type.
    """
    if name := _NAME_OF.get(data_type):
        return name
    if pa.types.is_decimal128(data_type):
        return f"Decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return "String"
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return "Binary"
    if pa.types.is_timestamp(data_type):
        return "Timestamp" if data_type.tz else "TimestampNtz"
    if pa.types.is_map(data_type):
        return f"Map<{type_text(data_type.key_type)},{type_text(data_type.item_type)}>"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"List<{type_text(data_type.value_type)}>"
    if pa.types.is_struct(data_type):
        inner = ",".join(f"{name_text(field.name)}:{type_text(field.type)}" for field in data_type)
        return f"Struct<{inner}>"
    raise InvalidSchemaTextError(
        f"A table cannot hold Arrow type {data_type}; cast the column first. {_allowed()}",
        type=str(data_type),
    )


def name_text(name: str) -> str:
    """Return a column's or struct field's name as it is written in schema and type texts."""
    return f"`{name.replace('`', '``')}`" if _NEEDS_BACKTICKS.search(name) else name


def _arrow_type(text: str, depth: int) -> pa.DataType:
    text = text.strip()
    if name := _BY_LOWER.get(text.lower()):
        return _PRIMITIVES[name]
    if match := _DECIMAL.fullmatch(text):
        return _decimal(int(match[1]), int(match[2]), text)
    if (match := _NESTED.fullmatch(text)) and depth < _MAX_NESTING:
        return _nested(match[1].lower(), match[2], text, depth + 1)
    raise InvalidSchemaTextError(f"Type {text!r} is unknown. {_allowed()}", type=text)


def _decimal(precision: int, scale: int, text: str) -> pa.DataType:
    if not (1 <= precision <= 38 and scale <= precision):
        raise InvalidSchemaTextError(
            f"Type {text!r} is out of range: precision is 1 to 38, scale is 0 to the precision.", type=text
        )
    return pa.decimal128(precision, scale)


def _nested(kind: str, inner: str, text: str, depth: int) -> pa.DataType:
    parts = [part.strip() for part in _split(inner)]
    if kind == "list" and len(parts) == 1:
        return pa.list_(_arrow_type(parts[0], depth))
    if kind == "map" and len(parts) == 2:
        return pa.map_(_arrow_type(parts[0], depth), _arrow_type(parts[1], depth))
    pairs = [(name, inner) for name, inner in map(_name_and_type, parts) if name and inner is not None]
    if kind == "struct" and len(pairs) == len(parts):
        return pa.struct([pa.field(name, _arrow_type(inner, depth)) for name, inner in pairs])
    raise InvalidSchemaTextError(
        f"Type {text!r} is incomplete: write List<T>, Map<K,V> or Struct<name:T,other:T>.", type=text
    )


def _parse_field(part: str, whole: str) -> Field:
    name, type_part = _name_and_type(part)
    if not name or type_part is None:
        raise InvalidSchemaTextError(
            f"{part!r} in schema {whole!r} is not 'name:Type'. Write it like 'id:Int32 not null,name:String'.",
            schema=whole,
        )
    bare = _NOT_NULL.sub("", type_part)
    arrow_type(bare)
    return Field(name, bare.strip(), nullable=bare == type_part)


def _name_and_type(part: str) -> tuple[str, str | None]:
    """Return the name and the type text of `name:Type`; None for the type if there is no colon."""
    written = next(_split(part, ":"))
    name = written.strip()
    if len(name) > 1 and name[0] == name[-1] == "`":
        name = name[1:-1].replace("``", "`")
    return name, part[len(written) + 1 :] if len(written) < len(part) else None


def _split(text: str, mark: str = ",") -> Iterator[str]:
    """Split at the marks that stand outside all brackets and backticks."""
    depth = start = 0
    quoted = False
    for position, letter in enumerate(text):
        quoted ^= letter == "`"
        if quoted:
            continue
        depth += (letter in "<(") - (letter in ">)")
        if letter == mark and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _allowed() -> str:
    return f"Known types: {', '.join(_PRIMITIVES)}, Decimal(p,s), List<T>, Struct<name:T,…>, Map<K,V>."
