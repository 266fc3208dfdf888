"""The kinds of spec documents, and the model of each kind.

A model is imported when a document of its kind is read: pydantic needs as long to build it as to read a long spec.
"""

from __future__ import annotations

from importlib import import_module

from assay.model.specs.spec_document import SpecDocument

SPEC_KINDS = {
    "BmcQuirks": "assay.model.specs.bmc_quirks",
    "CheckCatalog": "assay.model.specs.check_catalog_and_gates",
    "Checklists": "assay.model.specs.checklists",
    "FabricDesign": "assay.model.fabric.fabric_design",
    "FaultCatalog": "assay.model.specs.fault_catalog",
    "FirmwareBundle": "assay.model.specs.firmware_bundle",
    "Gates": "assay.model.specs.check_catalog_and_gates",
    "KnownIssues": "assay.model.specs.known_issues",
    "LifecyclePolicy": "assay.model.specs.lifecycle_policy",
    "ManagementProfile": "assay.model.specs.management_profile",
    "Monitoring": "assay.model.specs.monitoring",
    "NodeSpec": "assay.model.specs.node_spec",
    "Schedules": "assay.model.specs.schedules",
    "TicketRoute": "assay.model.specs.ticket_route",
}
"""Kind → module. The model class has the kind's name."""


def load_spec_model(kind: str) -> type[SpecDocument]:
    """Return the model of a known kind."""
    model: type[SpecDocument] = getattr(import_module(SPEC_KINDS[kind]), kind)
    return model
