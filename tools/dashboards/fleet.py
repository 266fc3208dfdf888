"""The fleet at a glance: what customers can use, what is broken, and who must do something."""

from __future__ import annotations

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Query, bars, lines, number, stack

FLEET = Dashboard(
    "fleet",
    "fleet",
    {
        "Now": [
            number(
                "In service",
                "The share of all nodes that customers can use.",
                'sum(assay_nodes{in_service="true"}) / sum(assay_nodes)',
                "percentunit",
            ),
            number("Nodes", "All nodes of the inventory that assay knows.", "sum(assay_nodes)"),
            number("Open breakers", "Pools in which many nodes failed at once.", "sum(assay_breaker_open)"),
            number("Open faults", "Faults that nothing has cleared.", "sum(assay_faults_open) or vector(0)"),
            number("Open tickets", "Work for people.", "sum(assay_tickets_open) or vector(0)"),
            number("Held nodes", "Nodes on which people keep automation off.", "sum(assay_holds)"),
        ],
        "Nodes": [
            stack("Nodes by state", "Where the nodes are.", Query("sum by (state) (assay_nodes)", "{{state}}")),
            lines(
                "In service by pool",
                "The share of each pool that customers can use. The alert AssayGoodputLow is at 85 %.",
                Query(
                    'sum by (pool) (assay_nodes{in_service="true"}) / sum by (pool) (assay_nodes)',
                    "{{pool}}",
                ),
                unit="percentunit",
            ),
            lines(
                "Moves an hour",
                "How many nodes reached each state.",
                Query("sum by (to_state) (increase(assay_transitions_total[1h]))", "{{to_state}}"),
            ),
            lines(
                "Decisions that wait",
                "What assay wants to do, and what keeps it from doing so.",
                Query("sum by (blocker) (assay_pending_decisions)", "{{blocker}}"),
            ),
        ],
        "Faults and tickets": [
            bars(
                "Most frequent open faults",
                "The ten fault classes with the most open faults.",
                Query("topk(10, sum by (fault) (assay_faults_open))", "{{fault}}"),
            ),
            lines(
                "New faults an hour",
                "A fault that is seen again counts once.",
                Query("sum by (severity) (increase(assay_faults_total[1h]))", "{{severity}}"),
            ),
            lines(
                "Oldest ticket",
                "How long the oldest ticket has waited for people.",
                Query("assay_ticket_oldest_age_seconds", "{{severity}}"),
                unit="s",
            ),
            lines(
                "Tickets opened and closed",
                "In an hour.",
                Query("sum by (result) (increase(assay_tickets_total[1h]))", "{{result}}"),
            ),
        ],
        "Schedules and idle verification": [
            lines(
                "Late schedules",
                "How long a slot has been due that nobody has begun.",
                Query("max by (schedule) (assay_schedule_late_seconds)", "{{schedule}}"),
                unit="s",
            ),
            lines(
                "What an idle verification costs customers",
                "The wait that one in a hundred customers exceeded, over a day.",
                Query(
                    "histogram_quantile(0.99, sum by (le, schedule) "
                    "(increase(assay_idle_visit_customer_delay_seconds_bucket[1d])))",
                    "{{schedule}}",
                ),
                unit="s",
            ),
        ],
    },
    {},
)
