"""The nodes out of service: which, where, and for how long. Nodes that serve have no series of their own."""

from __future__ import annotations

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Panel, Query, bars, lines, number

CHOSEN = 'pool=~"$pool", node=~"$node"'

NODES = Dashboard(
    "nodes",
    "nodes out of service",
    {
        "Now": [
            number("Out of service", "Nodes.", 'sum(assay_nodes{pool=~"$pool", in_service="false"}) or vector(0)'),
            number("Not listed", "Nodes beyond the 500 that are listed.", "assay_nodes_unlisted"),
            number(
                "Longest",
                "How long the longest has been in its state.",
                f"max(assay_node_state_age_seconds{{{CHOSEN}}})",
                "s",
            ),
        ],
        "Nodes": [
            Panel(
                "Nodes out of service",
                "The longest first. `assay explain NODE` says why it is there, and who must do what.",
                (Query(f"sort_desc(assay_node_state_age_seconds{{{CHOSEN}}})"),),
                "table",
                "s",
            ),
            bars(
                "By state",
                "How many of the chosen nodes are in each state.",
                Query(f"count by (state) (assay_node_state_age_seconds{{{CHOSEN}}})", "{{state}}"),
            ),
            lines(
                "The way of the chosen nodes",
                "A line for each node and state: it begins when the node reaches the state.",
                Query(f"assay_node_state_age_seconds{{{CHOSEN}}}", "{{node}} {{state}}"),
                unit="s",
            ),
        ],
    },
    {"pool": "assay_nodes", "node": "assay_node_state_age_seconds"},
)
