"""Dashboard of assay itself: does it run, is it fast, and does it hear everybody."""

from __future__ import annotations

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Panel, Query, lines, number

ASSAY_ITSELF = Dashboard(
    "assay",
    "assay itself",
    {
        "Now": [
            number("Ledger readable", "1 if it is.", "min(assay_ledger_up)"),
            number("Entries", "Of the ledger.", "max(assay_ledger_entries_total)"),
            number("Newest entry", "Its age.", "min(assay_ledger_last_entry_age_seconds)", "s"),
            number("Last decision", "When the last pass ended.", "min(assay_pass_last_end_age_seconds)", "s"),
            number("Last run of checks", "Its age.", "min(assay_last_run_age_seconds)", "s"),
            number("Ledger", "Its size.", "max(assay_ledger_size_bytes)", "bytes"),
        ],
        "Passes": [
            lines(
                "Duration of passes",
                "What nine of ten passes of each stage take at most.",
                Query(
                    "histogram_quantile(0.9, sum by (le, stage) (increase(assay_pass_duration_seconds_bucket[1h])))",
                    "{{stage}}",
                ),
                unit="s",
            ),
            lines(
                "CPU of passes",
                "The share of one core.",
                Query("sum by (stage) (rate(assay_pass_cpu_seconds_total[5m]))", "{{stage}}"),
                unit="percentunit",
            ),
            lines(
                "Failed passes",
                "In an hour.",
                Query("sum by (stage) (increase(assay_pass_failures_total[1h]))", "{{stage}}"),
            ),
            lines(
                "Since the last pass",
                "Of each stage.",
                Query("min by (stage) (assay_pass_last_end_age_seconds)", "{{stage}}"),
                unit="s",
            ),
        ],
        "Checks and effects": [
            lines(
                "Outcomes an hour",
                "By verdict.",
                Query("sum by (verdict) (increase(assay_outcomes_total[1h]))", "{{verdict}}"),
            ),
            lines(
                "Effects that have not ended",
                "By kind.",
                Query("sum by (action) (assay_effects_open)", "{{action}}"),
            ),
            lines(
                "Attempts that came to nothing",
                "In an hour; assay tries again.",
                Query("sum by (action) (increase(assay_effect_retries_total[1h]))", "{{action}}"),
            ),
            lines(
                "Workflows of DBOS",
                "That have not ended, by pool.",
                Query("sum by (queue) (assay_dbos_workflows)", "{{queue}}"),
            ),
        ],
        "Hearing": [
            lines(
                "Silent sources",
                "Agents, probes and BMCs.",
                Query("sum by (source) (assay_sources_silent)", "{{source}}"),
            ),
            lines(
                "Items from agents", "A second.", Query("sum(rate(assay_agent_items_total[5m]))", "items"), unit="cps"
            ),
            lines("Entries written", "A second.", Query("rate(assay_ledger_entries_total[5m])", "entries"), unit="cps"),
            lines(
                "CPU of a scrape",
                "Of these metrics themselves.",
                Query("assay_metrics_collect_cpu_seconds", "CPU"),
                unit="s",
            ),
            Panel("Version and commit", "What runs.", (Query("assay_build_info"), Query("assay_fleet_info")), "table"),
        ],
    },
    {},
)
