"""The base models of every spec document, and the kinds of documents with their models."""

from __future__ import annotations

from datetime import date
from importlib import import_module
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class StrictModel(BaseModel):
    """A part of a spec: no unknown keys, no converted values, finite numbers, frozen instances.

    `source`: where the number or judgement comes from, such as a document or a measurement. `sources`: the documents
    that the values come from. `why`, `reason`: why it is so, for people.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, allow_inf_nan=False)


Reviewer = Annotated[str, Field(pattern=r"^(@[\w.-]+(/[\w.-]+)*|[^\s@#]+@[^\s@#]+)$")]
RepositoryPath = Annotated[str, Field(pattern=r"^/[^\s#\\]*$")]
SpecName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]


def _check_day(day: str) -> str:
    try:
        date.fromisoformat(day)
    except ValueError as error:
        raise ValueError(f"{day} is not a day: {error}") from None
    return day


IsoDay = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d{2}-\d{2}$"),
    # YAML reads a day without quotes as a date
    BeforeValidator(lambda day: day.isoformat() if type(day) is date else day),
    AfterValidator(_check_day),
]
"""A day, such as 2026-11-21."""


class SpecDocument(StrictModel):
    """A whole spec document of one `kind`. Others refer to it by `name`.

    It may extend one other document of its kind: mappings merge key by key, `null` removes a key, and any other value
    replaces the extended one (JSON Merge Patch, RFC 7396).

    `kind`: which of the kinds the document is. `name`: unique among the documents of its kind. `extends`: the document
    whose fields this one takes over. `description`: what it is, for people. `owner`: the team that answers for it.
    `stands_in`: the mark of an example: what to put here for real machines. What would use the document there refuses.
    A document that extends it has the mark too, until it says `stands_in: null`.
    """

    kind: str
    name: SpecName
    extends: SpecName = ""
    description: str = ""
    owner: str = ""
    stands_in: str = ""


class CodeOwners(SpecDocument):
    """Who reviews a change, by the `owner` of the spec. `assay specs codeowners` makes the forge's CODEOWNERS of it.

    `teams`: reviewers by owner: teams of the forge (`@org/team`), users (`@name`), e-mail addresses. `paths`: the owner
    of files that are no specs, or of whole folders, by path from the root (`/playbooks/`; `/` means all other files).
    """

    kind: Literal["CodeOwners"]
    teams: dict[str, Annotated[list[Reviewer], Field(min_length=1)]] = Field(min_length=1)
    paths: dict[RepositoryPath, str] = Field(default={}, json_schema_extra={"additionalProperties": False})


SPEC_KINDS = {
    "AdapterNames": "assay.model.specs.fabric.adapters",
    "BmcQuirks": "assay.model.specs.bmc_quirks",
    "BurnIn": "assay.model.specs.burn_in",
    "CheckCatalog": "assay.model.specs.check_catalog",
    "Checklists": "assay.model.specs.technician_work",
    "CollectiveWorkload": "assay.model.specs.workload",
    "CodeOwners": "assay.model.specs.spec_document",
    "ExpectedMachines": "assay.model.specs.machines",
    "FabricDesign": "assay.model.specs.fabric.fabric_design",
    "FaultCatalog": "assay.model.specs.fault_catalog",
    "FirmwareBundle": "assay.model.specs.firmware_bundle",
    "Gates": "assay.model.specs.check_catalog",
    "GoldenDigests": "assay.model.specs.golden_digests",
    "Image": "assay.model.specs.image",
    "KnownIssues": "assay.model.specs.known_issues",
    "LifecyclePolicy": "assay.model.specs.lifecycle_policy",
    "ManagementProfile": "assay.model.specs.management_profile",
    "Monitoring": "assay.model.specs.monitoring",
    "NodeSpec": "assay.model.specs.node.node_spec",
    "Provisioning": "assay.model.specs.provisioning",
    "Schedules": "assay.model.specs.schedules",
    "TicketRoute": "assay.model.specs.ticket_route",
    "TrendRules": "assay.model.specs.trend_rules",
}
"""Kind → module. The model class has the kind's name.

A module is imported when a document of its kind is read: pydantic needs as long to build a model as to read a long
spec."""


def load_spec_model(kind: str) -> type[SpecDocument]:
    """Return the model of a known kind."""
    model: type[SpecDocument] = getattr(import_module(SPEC_KINDS[kind]), kind)
    return model
