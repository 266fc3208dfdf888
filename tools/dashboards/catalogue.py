"""All dashboards."""

from __future__ import annotations

from tools.dashboards.assay_itself import ASSAY_ITSELF
from tools.dashboards.fabric import FABRIC
from tools.dashboards.fleet import FLEET
from tools.dashboards.nodes import NODES
from tools.dashboards.pool import POOL
from tools.dashboards.rollout import ROLLOUT

DASHBOARDS = (FLEET, POOL, NODES, FABRIC, ROLLOUT, ASSAY_ITSELF)
