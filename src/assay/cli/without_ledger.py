"""What verbs that read show of a fleet whose ledger cannot be read: what the inventory and the evidence store know.

The error itself comes after that on stderr, with exit code 2: whatever the ledger would have said is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from assay.cli.context_line import print_answer
from assay.cli.name_check import suggest_names
from assay.ledger.errors import LedgerError
from assay.model.errors import AssayError
from assay.model.facts import extend, fact
from assay.model.text.csv_rows import format_csv
from assay.model.timestamps import format_ago

if TYPE_CHECKING:
    from assay.cli.workspace import Workspace

UNKNOWN = "unknown"


@fact
class UnknownNode:
    """What is known of a node without the ledger."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that the node is in."""
    state: None
    """Always null: the ledger knows the state."""
    node_spec: str
    """The node spec that says what the node must be."""
    observed: str | None
    """When evidence of it was last stored here: ISO 8601 with the offset of UTC; null if never."""


@fact
class UnknownNodesAnswer:
    """The nodes of the inventory, with unknown states."""

    nodes: list[UnknownNode]
    """The nodes of the inventory, by pool and name."""
    problem: str
    """Why the ledger cannot be read."""


@fact
class UnknownNodeAnswer(UnknownNode):
    """What is known of the node without the ledger."""

    problem: str
    """Why the ledger cannot be read."""


@fact
class UnknownForCustomer:
    """What a customer is told while the ledger cannot be read."""

    node: str
    """The name of the node."""
    in_service: None
    """Always null: it is not known."""
    happened: str
    """That the state of the node is not known."""


@fact
class UnknownTicketsAnswer:
    """The tickets as they were last written to files, open or closed."""

    tickets: None
    """Always null: only the ledger knows which tickets are open."""
    files: dict[str, str]
    """The first line of each file of a ticket, by the path of the file."""
    problem: str
    """Why the ledger cannot be read."""


def show_nodes_without_ledger(workspace: Workspace, error: LedgerError, form: str, node: str = "") -> NoReturn:
    """Print what is known of every node, or of one, without the ledger; then raise `error`.

    Raises AssayError instead for a node that the inventory does not have.
    """
    known = _describe_nodes(workspace, error)
    if node:
        _require_declared(node, known, error)
    shown = [known[node]] if node else list(known.values())
    csv, lines = format_csv(("node", "pool", "state"), shown), _format_nodes(shown, workspace.clock.now())
    alone = extend(UnknownNodeAnswer, known[node], problem=str(error)) if node else None
    print_answer(alone or UnknownNodesAnswer(shown, str(error)), form, csv if form == "csv" else lines)
    raise error


def show_customer_without_ledger(workspace: Workspace, error: LedgerError, form: str, node: str) -> NoReturn:
    """Tell a customer that the state of a node is unknown, without a word of why; then raise `error`.

    Raises AssayError instead for a node that the inventory does not have.
    """
    _require_declared(node, _describe_nodes(workspace, error), error)
    text = "The state of the node is not known at present: its records cannot be read."
    print_answer(UnknownForCustomer(node, None, text), form, [node, "", text])
    raise error


def show_tickets_without_ledger(workspace: Workspace, error: LedgerError, form: str) -> NoReturn:
    """Print the tickets that were last written to `.assay/tickets/`, with their files; then raise `error`."""
    files = sorted((workspace.data_dir / "tickets").glob("*.md"))
    titles = {str(file): file.read_text(encoding="utf-8", errors="replace").partition("\n")[0] for file in files}
    lines = [f"{title.lstrip('# ')}  ({file})" for file, title in titles.items()] or ["none"]
    if form != "csv":
        head = "The open tickets are unknown. Files of tickets, open or closed:"
        print_answer(UnknownTicketsAnswer(None, titles, str(error)), form, [head, *lines])
    raise error


def _describe_nodes(workspace: Workspace, error: LedgerError) -> dict[str, UnknownNode]:
    """Return what is known of each declared node. Raises AssayError if the fleet cannot be read either."""
    from assay.observe.evidence_store import EvidenceStore

    try:
        nodes = workspace.fleet.nodes.values()
    except AssayError as other:
        raise AssayError(f"{error}\nand the fleet cannot be read either: {other}") from error
    store = EvidenceStore(workspace.evidence_dir)
    return {
        node.name: UnknownNode(
            node=node.name,
            pool=node.pool,
            state=None,
            node_spec=node.spec,
            observed=(
                datetime.fromtimestamp(stored_s, UTC).isoformat(timespec="seconds")
                if (stored_s := store.stored_at(node.name))
                else None
            ),
        )
        for node in sorted(nodes, key=lambda node: (node.pool, node.name))
    }


def _require_declared(node: str, known: Mapping[str, object], error: LedgerError) -> None:
    if node not in known:
        hint = suggest_names(node, set(known), "`assay check` reads the inventory")
        raise AssayError(f"{error}\n{node} is not in the inventory either", fix=hint) from error


def _format_nodes(shown: Sequence[UnknownNode], now: datetime) -> Iterator[str]:
    yield "The states of the nodes are unknown. From the inventory and the evidence store:"
    for node in shown:
        seen = f"observed {format_ago(node.observed, now)}" if node.observed else "never observed from here"
        yield f"{node.node}  pool {node.pool}, {node.node_spec}: state {UNKNOWN}, {seen}"
