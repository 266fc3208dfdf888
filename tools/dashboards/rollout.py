"""The change that is on its way to the nodes, and what it costs."""

from __future__ import annotations

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Query, lines, number, stack

ROLLOUT = Dashboard(
    "rollout",
    "rollout",
    {
        "Now": [
            number("Waiting", "Nodes.", 'sum(assay_rollout_nodes{progress="waiting"})'),
            number("Out of service for it", "Nodes.", 'sum(assay_rollout_nodes{progress="out"})'),
            number(
                "Proven",
                "Nodes that serve again and passed their checks.",
                'sum(assay_rollout_nodes{progress="proven"})',
            ),
            number("Age", "Of the active rollout; 0 without one.", "max(assay_rollout_age_seconds) or vector(0)", "s"),
            number("Paused for", "0 if it is not paused.", "max(assay_rollout_pause_age_seconds) or vector(0)", "s"),
            number("Commits", "That assay took up, ever.", "sum(assay_commits_adopted_total)"),
        ],
        "Progress": [
            stack(
                "Nodes of the rollout",
                "How far they are.",
                Query("sum by (progress) (assay_rollout_nodes)", "{{progress}}"),
            ),
            lines(
                "Rollouts", "Started and ended, ever.", Query("sum by (result) (assay_rollouts_total)", "{{result}}")
            ),
            lines(
                "In service meanwhile",
                "The share of each pool that customers can use.",
                Query('sum by (pool) (assay_nodes{in_service="true"}) / sum by (pool) (assay_nodes)', "{{pool}}"),
                unit="percentunit",
            ),
            lines(
                "Nodes brought there by it",
                "Nodes in each state because of the rollout.",
                Query('sum by (state) (assay_nodes{reason="rollout"})', "{{state}}"),
            ),
        ],
        "Effects": [
            lines(
                "Effects an hour",
                "Verified and failed, by kind.",
                Query("sum by (action, result) (increase(assay_effects_total[1h]))", "{{action}} {{result}}"),
            ),
            lines(
                "Median duration",
                "From intent to proof, over a day.",
                Query(
                    "histogram_quantile(0.5, sum by (le, action) (increase(assay_effect_duration_seconds_bucket[1d])))",
                    "{{action}}",
                ),
                unit="s",
            ),
        ],
    },
    {},
)
