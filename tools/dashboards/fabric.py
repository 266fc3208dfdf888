"""The fabric: cabling and links, by the checks, faults and schedules that are about them."""

from __future__ import annotations

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Query, bars, lines, number

CHECKS = 'family=~"fabric/.*|weekly/.*|.*/test_(adapters|collectives|gpu_links|network|rails)"'
FAULTS = 'fault=~"(ib|hca|nic|nvswitch|gpu.nvlink|gpu.fabric|collective).*"'

FABRIC = Dashboard(
    "fabric",
    "fabric",
    {
        "Now": [
            number(
                "Open faults", "Of links, adapters and switches.", f"sum(assay_faults_open{{{FAULTS}}}) or vector(0)"
            ),
            number(
                "Failed checks",
                "In the last day.",
                f'sum(increase(assay_outcomes_total{{{CHECKS}, verdict="fail"}}[1d])) or vector(0)',
            ),
            number("Checks", "In the last day.", f"sum(increase(assay_outcomes_total{{{CHECKS}}}[1d]))"),
        ],
        "Checks of the fabric": [
            lines(
                "Outcomes an hour",
                "Of each file of checks, by verdict.",
                Query(
                    f"sum by (family, verdict) (increase(assay_outcomes_total{{{CHECKS}}}[1h]))",
                    "{{family}} {{verdict}}",
                ),
            ),
            bars(
                "Open faults by class",
                "The fault classes with open faults.",
                Query(f"sum by (fault) (assay_faults_open{{{FAULTS}}})", "{{fault}}"),
            ),
            lines(
                "New faults an hour",
                "By class.",
                Query(f"sum by (fault) (increase(assay_faults_total{{{FAULTS}}}[1h]))", "{{fault}}"),
            ),
        ],
        "Scans and searches": [
            lines(
                "Until the next one",
                "Of each schedule; its target is a pool or a fabric.",
                Query("assay_schedule_next_start_seconds", "{{schedule}} {{target}}"),
                unit="s",
            ),
            lines(
                "Late",
                "How long a slot has been due that nobody has begun.",
                Query("assay_schedule_late_seconds", "{{schedule}} {{target}}"),
                unit="s",
            ),
            lines(
                "Slots that ended",
                "In a day.",
                Query(
                    "sum by (schedule, result) (increase(assay_schedule_runs_total[1d]))",
                    "{{schedule}} {{result}}",
                ),
            ),
        ],
    },
    {},
)
