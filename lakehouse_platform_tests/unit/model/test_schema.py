"""Schema texts: what a person writes becomes the Arrow schema meant, or an error with a hint."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidSchemaTextError
from lakehouse_platform.model.schema import Field, Schema, arrow_type, name_text, type_text

# Names that people give, and names that would break the text if it were glued together carelessly.
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.text(
    " ,:<>()`ab", min_size=1, max_size=4
)
PRIMITIVES = st.sampled_from(
    [
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.bool_(),
        pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.binary(),
    ]
)  # fmt: skip
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s)))


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    return fields.map(lambda types: pa.struct(list(types.items())))


TYPES = st.recursive(
    PRIMITIVES | DECIMALS,
    lambda inner: (
        inner.map(pa.list_) | st.tuples(inner, inner).map(lambda kv: pa.map_(*kv)) | _structs(inner)
    ),
    max_leaves=6,
)
FIELDS = st.lists(
    st.tuples(NAMES, TYPES, st.booleans()), min_size=1, max_size=6, unique_by=lambda field: field[0].lower()
)


@given(TYPES)
def test_the_text_of_a_type_names_that_type(data_type: pa.DataType) -> None:
    assert arrow_type(type_text(data_type)) == data_type


@given(TYPES)
def test_case_and_blanks_do_not_matter_for_built_in_names(data_type: pa.DataType) -> None:
    assume("`" not in type_text(data_type))
    spaced = type_text(data_type).replace(",", " , ").replace("<", "< ").replace(">", " >")
    assert arrow_type(f"  {spaced} ") == data_type


@given(FIELDS)
def test_a_schema_survives_the_round_trip_through_text(fields: list[tuple[str, pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(*field) for field in fields])
    ours = Schema.from_arrow(schema)
    text = ",".join(
        f"{name_text(f.name)}:{f.data_type}{'' if f.nullable else ' not null'}" for f in ours.fields
    )
    assert Schema.parse(text).to_arrow() == ours.to_arrow() == schema


@given(st.text(max_size=40))
def test_any_text_is_a_schema_or_a_clear_refusal(text: str) -> None:
    try:
        outcome = str(len(Schema.parse(text).to_arrow()))
    except InvalidSchemaTextError as error:
        outcome = error.message
    assert outcome.isdigit() or outcome.endswith(".")


def test_the_seed_text_is_understood() -> None:
    assert Schema.parse("id:Int32,name:String").to_arrow() == pa.schema(
        {"id": pa.int32(), "name": pa.string()}
    )


def test_fields_are_given_by_name_as_in_the_seed() -> None:
    schema = Schema(
        fields=[
            Field(name="id", data_type="Int32", nullable=False),
            Field(name="name", data_type="String", nullable=False),
            Field(name="email", data_type="String", nullable=True),
        ]
    )
    assert [field.nullable for field in schema.to_arrow()] == [False, False, True]


@pytest.mark.parametrize("suffix", [" not null", " NOT NULL", "  Not   Null "])
def test_not_null_may_follow_any_type(suffix: str) -> None:
    (field,) = Schema.parse(f"tags:List<String>{suffix}").to_arrow()
    assert not field.nullable


def test_key_columns_are_not_null_even_if_the_text_does_not_say_so() -> None:
    schema = Schema.parse("id:Int64,name:String", primary_key=["id"]).to_arrow()
    assert [field.nullable for field in schema] == [False, True]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("int", "Int32"), ("integer", "Int32"), ("bigint", "Int64"), ("long", "Int64"), ("smallint", "Int16"),
        ("tinyint", "Int8"), ("float", "Float32"), ("double", "Float64"), ("utf8", "String"),
        ("TEXT", "String"), ("varchar", "String"), ("bool", "Boolean"), ("date", "Date32"),
        ("timestamp_ntz", "TimestampNtz"), ("bytes", "Binary"),
    ],
)  # fmt: skip
def test_common_names_of_other_systems_are_understood(alias: str, name: str) -> None:
    assert type_text(arrow_type(alias)) == name


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "id:Int32 not null,name:String"),
        (" , ", "id:Int32 not null,name:String"),
        ("id", "is not 'name:Type'"),
        (":Int32", "is not 'name:Type'"),
        ("id:", "Known types"),
        ("id:Int33", "Known types"),
        ("id:Int32,", "is not 'name:Type'"),
        ("id:List<Int32", "Known types"),
        ("id:List<Int32,String>", "incomplete"),
        ("id:Map<String>", "incomplete"),
        ("id:Struct<>", "incomplete"),
        ("id:Struct<a>", "incomplete"),
        ("id:Decimal(39,0)", "precision is 1 to 38"),
        ("id:Decimal(5,6)", "scale is 0 to the precision"),
        ("id:Decimal(0,0)", "precision is 1 to 38"),
        ("id:Int32 not", "Known types"),
    ],
)
def test_a_wrong_text_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InvalidSchemaTextError) as caught:
        Schema.parse(text)
    assert hint in caught.value.message


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ([], []),
        ([Field("", "Int32")], []),
        ([Field("a", "Int32"), Field("A", "String")], []),
        ([Field("a", "Int32")], ["b"]),
        ([Field("a", "Nothing")], []),
    ],
)
def test_a_schema_that_no_table_can_have_is_refused(fields: list[Field], key: list[str]) -> None:
    with pytest.raises(InvalidSchemaTextError):
        Schema(fields, key).to_arrow()


@pytest.mark.parametrize(
    "data_type", [pa.uint8(), pa.duration("s"), pa.dictionary(pa.int8(), pa.string()), pa.null()]
)
def test_arrow_types_that_a_table_cannot_hold_are_refused(data_type: pa.DataType) -> None:
    with pytest.raises(InvalidSchemaTextError, match="cast the column first"):
        Schema.from_arrow(pa.schema({"a": data_type}))


def test_layouts_of_the_same_value_have_the_same_text() -> None:
    assert type_text(pa.large_string()) == type_text(pa.string_view()) == "String"
    assert type_text(pa.large_binary()) == type_text(pa.binary_view()) == "Binary"
    assert type_text(pa.large_list(pa.int8())) == "List<Int8>"
    assert type_text(pa.timestamp("ns", "Europe/Berlin")) == "Timestamp"


def test_nesting_without_end_is_refused_rather_than_followed() -> None:
    with pytest.raises(InvalidSchemaTextError):
        arrow_type("List<" * 10_000 + "Int8" + ">" * 10_000)


def test_a_text_with_thousands_of_columns_is_refused() -> None:
    columns = [f"c{number}:Int64" for number in range(4097)]
    assert len(Schema.parse(",".join(columns[:-1])).fields) == 4096
    with pytest.raises(InvalidSchemaTextError, match="4097 columns"):
        Schema.parse(",".join(columns))


def test_a_name_with_nul_is_refused_because_it_would_be_cut_there() -> None:
    with pytest.raises(InvalidSchemaTextError, match="NUL"):
        Schema.from_arrow(pa.schema([("a\0b", pa.int64())])).to_arrow()
    with pytest.raises(InvalidSchemaTextError, match="NUL"):
        Schema.parse("a\0b:Int64").to_arrow()
