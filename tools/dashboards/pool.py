"""One pool, or several: where its nodes are, what they wait for, and how old their proofs are."""

from __future__ import annotations

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Query, bars, lines, number, stack

POOL = Dashboard(
    "pool",
    "pool",
    {
        "Now": [
            number(
                "In service",
                "The share of the nodes that customers can use.",
                'sum(assay_nodes{pool=~"$pool", in_service="true"}) / sum(assay_nodes{pool=~"$pool"})',
                "percentunit",
            ),
            number("Nodes", "All nodes of the pools.", 'sum(assay_nodes{pool=~"$pool"})'),
            number("Breaker", "1 if it is open.", 'max(assay_breaker_open{pool=~"$pool"})'),
            number("Held back by it", "Nodes.", 'sum(assay_breaker_held_nodes{pool=~"$pool"})'),
            number("Held by people", "Nodes.", 'sum(assay_holds{pool=~"$pool"})'),
            number(
                "Jobs unknown", "Nodes whose jobs no scheduler tells.", 'sum(assay_jobs_unknown_nodes{pool=~"$pool"})'
            ),
        ],
        "Nodes": [
            stack(
                "Nodes by state",
                "Where the nodes are.",
                Query('sum by (state) (assay_nodes{pool=~"$pool"})', "{{state}}"),
            ),
            stack(
                "Nodes out of service by reason",
                "The rule of the policy that took them out.",
                Query('sum by (reason) (assay_nodes{pool=~"$pool", in_service="false"})', "{{reason}}"),
            ),
            lines(
                "Longest stay in a state",
                "How long the node that has been there longest is in each state.",
                Query('max by (state) (assay_state_oldest_age_seconds{pool=~"$pool"})', "{{state}}"),
                unit="s",
            ),
            lines(
                "Median stay that ended",
                "How long half of the stays in each state lasted at most, over a week.",
                Query(
                    "histogram_quantile(0.5, sum by (le, state) "
                    '(increase(assay_stay_duration_seconds_bucket{pool=~"$pool"}[7d])))',
                    "{{state}}",
                ),
                unit="s",
            ),
            lines(
                "Oldest decision that waits",
                "By what it waits for.",
                Query('max by (blocker) (assay_pending_oldest_age_seconds{pool=~"$pool"})', "{{blocker}}"),
                unit="s",
            ),
            lines(
                "Moves an hour",
                "Between which states.",
                Query(
                    'sum by (from_state, to_state) (increase(assay_transitions_total{pool=~"$pool"}[1h]))',
                    "{{from_state}} → {{to_state}}",
                ),
            ),
        ],
        "Proof": [
            lines(
                "Oldest pass",
                "Of each phase: the oldest of the newest passes on nodes whose state asks for it.",
                Query('max by (phase) (assay_phase_oldest_pass_age_seconds{pool=~"$pool"})', "{{phase}}"),
                unit="s",
            ),
            lines(
                "Nodes without a pass",
                "Nodes whose state asks for a phase in which they have no pass.",
                Query('sum by (phase) (assay_phase_unproven_nodes{pool=~"$pool"})', "{{phase}}"),
            ),
        ],
        "Faults and sources": [
            bars(
                "Open faults",
                "By class.",
                Query('sum by (fault) (assay_faults_open{pool=~"$pool"})', "{{fault}}"),
            ),
            lines(
                "Oldest fault",
                "By severity.",
                Query('max by (severity) (assay_fault_oldest_age_seconds{pool=~"$pool"})', "{{severity}}"),
                unit="s",
            ),
            lines(
                "Silent agents, probes and BMCs",
                "Silent for longer than the policy allows.",
                Query('sum by (source) (assay_sources_silent{pool=~"$pool"})', "{{source}}"),
            ),
            lines(
                "Oldest last answer",
                "Of all sources of a kind that ever answered.",
                Query('max by (source) (assay_source_oldest_answer_age_seconds{pool=~"$pool"})', "{{source}}"),
                unit="s",
            ),
        ],
    },
    {"pool": "assay_nodes"},
)
