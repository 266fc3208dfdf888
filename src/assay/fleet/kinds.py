"""The kinds of spec documents, and the models that say what each may hold.

A model is loaded when a document of its kind is met: to build one takes pydantic as long as to read a long spec.
"""

from __future__ import annotations

from importlib import import_module

from assay.model.spec import Spec

KINDS = {
    "BmcQuirks": "assay.model.quirks",
    "CheckCatalog": "assay.model.checks",
    "Checklists": "assay.model.checklist",
    "FabricDesign": "assay.model.design",
    "FaultCatalog": "assay.model.faults",
    "FirmwareBundle": "assay.model.firmware",
    "Gates": "assay.model.gates",
    "KnownIssues": "assay.model.known",
    "LifecyclePolicy": "assay.model.policy",
    "ManagementProfile": "assay.model.profile",
    "Monitoring": "assay.model.monitoring",
    "NodeSpec": "assay.model.nodespec",
    "Schedules": "assay.model.schedule",
    "TicketRoute": "assay.model.ticket_route",
}
"""Where each kind's model is, which is called as the kind is."""


def model_of(kind: str) -> type[Spec]:
    """Return the model of a kind that there is."""
    model: type[Spec] = getattr(import_module(KINDS[kind]), kind)
    return model
