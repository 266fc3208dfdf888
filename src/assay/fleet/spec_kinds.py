"""The kinds of spec documents, and the models that say what each may hold.

A model is loaded when a document of its kind is met: to build one takes pydantic as long as to read a long spec.
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
"""Where each kind's model is, which is called as the kind is."""


def load_spec_model(kind: str) -> type[SpecDocument]:
    """Return the model of a kind that there is."""
    model: type[SpecDocument] = getattr(import_module(SPEC_KINDS[kind]), kind)
    return model
