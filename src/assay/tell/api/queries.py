"""What a request may ask for: the fields of its query, by endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.tell.server.request_bodies_and_refusals import make_refusal

MAX_PAGE = 1000
MAX_QUERY_CHARACTERS = 1024
Text = Annotated[str, Field(max_length=128)]


class ApiQuery(BaseModel):
    """A query without fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NodesQuery(ApiQuery):
    """Which nodes: of a pool, in a state, held by somebody; after the node of this name, at most `limit`."""

    pool: Text = ""
    state: Text = ""
    held: bool | None = None
    after: Text = ""
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


class ExplainQuery(ApiQuery):
    """How many decisions, 0 for all."""

    last: int = Field(default=8, ge=0, le=MAX_PAGE)


class TicketsQuery(ApiQuery):
    """Whether closed tickets are listed too."""

    all: bool = False


class ChangesQuery(ApiQuery):
    """Changes after a position of the ledger, at most `limit`."""

    after: int = Field(default=0, ge=0, le=2**62)
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


def read_query(model: type[ApiQuery], text: str, fields: Mapping[str, str]) -> ApiQuery:
    """Return the query of a request. Raises a refusal that says which field is wrong."""
    if len(text) > MAX_QUERY_CHARACTERS:
        raise make_refusal(414, f"a query of more than {MAX_QUERY_CHARACTERS} characters")
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)]
        raise make_refusal(422, "; ".join(found)) from None
