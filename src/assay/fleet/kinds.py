"""The kinds of spec documents, and the models that say what each may hold."""

from __future__ import annotations

from assay.model.checks import CheckCatalog
from assay.model.design import FabricDesign
from assay.model.faults import FaultCatalog
from assay.model.firmware import FirmwareBundle
from assay.model.known import KnownIssues
from assay.model.monitoring import Monitoring
from assay.model.nodespec import NodeSpec
from assay.model.policy import LifecyclePolicy
from assay.model.profile import ManagementProfile
from assay.model.quirks import BmcQuirks
from assay.model.spec import Spec
from assay.model.ticket_route import TicketRoute

KINDS: dict[str, type[Spec]] = {
    "BmcQuirks": BmcQuirks,
    "CheckCatalog": CheckCatalog,
    "FabricDesign": FabricDesign,
    "FaultCatalog": FaultCatalog,
    "FirmwareBundle": FirmwareBundle,
    "KnownIssues": KnownIssues,
    "LifecyclePolicy": LifecyclePolicy,
    "ManagementProfile": ManagementProfile,
    "Monitoring": Monitoring,
    "NodeSpec": NodeSpec,
    "TicketRoute": TicketRoute,
}
