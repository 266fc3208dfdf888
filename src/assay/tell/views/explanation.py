"""Why a node is in its state: what `assay explain --format json` prints."""

from __future__ import annotations

from assay.act.loop.projections import read_unknown_jobs
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, describe_returned_part, find_returned_parts
from assay.decide.state.node_state import NodeState
from assay.model.facts import extend
from assay.tell.customer.customer_situation import find_fault_catalog
from assay.tell.views.node_explanation import (
    JsonObject,
    add_code_meanings,
    build_decision_chain,
    describe_lemon_score,
    describe_recent_news,
    describe_requirements,
)
from assay.tell.views.node_status import NodeStatus, make_node_status
from assay.tell.views.node_sync import (
    ExplainAnswer,
    NodeSyncWithRemedies,
    find_node_rollout,
    find_node_sync,
    make_node_sync_status,
    make_rollout_of_node,
)
from assay.tell.views.records import RecordSource
from assay.tell.views.trust_view import find_node_trust


def describe_node_status(source: RecordSource, state: NodeState) -> NodeStatus:
    """Return a node's status, with the parts in it that were returned before, and since when its jobs are unknown."""
    assets = source.ledger_for_reading.entries(state.node, ASSET_ENTRY_KINDS)
    returned = [describe_returned_part(part) for part in find_returned_parts(assets)]
    return make_node_status(state, returned, read_unknown_jobs(source.data_dir).get(state.node))


def explain_node(source: RecordSource, state: NodeState, last: int) -> ExplainAnswer:
    """Return the status of a node, its last decisions with their causes (0: all), and what its state requires."""
    chain, requirements, news = explain_decisions(source, state, last)
    rollout, sync = find_node_rollout(source, state.node), find_node_sync(source, state)
    trust = find_node_trust(source.fleet, state)
    return extend(
        ExplainAnswer,
        describe_node_status(source, state),
        chain=chain,
        **requirements,
        **news,
        rollout=rollout and make_rollout_of_node(rollout),
        lemon=describe_lemon_score(source, state),
        trust=trust,
        sync=sync and extend(NodeSyncWithRemedies, make_node_sync_status(sync), remedies=list(sync.remedies)),
    )


def explain_decisions(
    source: RecordSource, state: NodeState, last: int
) -> tuple[list[JsonObject], JsonObject, JsonObject]:
    """Return the last decisions about a node (0: all), what its state requires, and its news; codes have meanings."""
    chain = build_decision_chain(source.ledger_for_reading, state, last)
    requirements, news = describe_requirements(source, state), describe_recent_news(source, state)
    causes = [cause for decision in chain for cause in decision["because"]]
    add_code_meanings(find_fault_catalog(source), [*causes, *news["told"], *requirements["undecided"]])
    return chain, requirements, news
