"""Parts that the descriptions of requests have in common."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from lakehouse_platform.identity.passwords import MAX_PASSWORD_BYTES

# Longer than any name, address or id: the services say exactly what is allowed.
_LONG = 320  # the longest e-mail address, RFC 3696 erratum 1690


class Body(BaseModel):
    """Base of what a request brings: a field that is not known is refused, for it may be one that is misspelt."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


Text = Annotated[str, StringConstraints(max_length=_LONG)]
Password = Annotated[
    str,
    StringConstraints(max_length=MAX_PASSWORD_BYTES),
    Field(json_schema_extra={"format": "password", "writeOnly": True}),
]
UserId = Annotated[str, Path(max_length=64, description="Id of the user.")]
SessionId = Annotated[str, Path(max_length=64, description="Id of the sign-in.")]
# The longest name that `model/names.py` allows is shorter.
GrantedTable = Annotated[str, Path(max_length=255, description="Name of the table; `*` for every one.")]
PageSize = Annotated[int, Query(ge=1, le=1000, description="Entries on the page.")]
