"""From the routes that a fleet declares to sinks that can be used."""

from __future__ import annotations

from pathlib import Path

from assay.fleet.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.specs.ticket_routes_and_checklists import DEFAULT_TICKET_FOLDER, MarkdownRoute, TicketRoute
from assay.tickets.markdown_files import MarkdownFileSink
from assay.tickets.sink_protocol import TicketSink

DEFAULT_ROUTE = TicketRoute(kind="TicketRoute", name="files", markdown=MarkdownRoute())


def list_ticket_routes(fleet: Fleet, home: Path) -> list[TicketRoute]:
    """Return the declared routes, or, where there is none, the one to Markdown files.

    A fleet that lives in a lab writes files only: nobody is to be sent to a node that does not exist.
    """
    rehearsed = (home / "lab" / "clock.json").exists()
    routes = [one for one in fleet.ticket_routes.values() if one.markdown is not None or not rehearsed]
    return routes or [DEFAULT_ROUTE]


def derive_destination_id(route: TicketRoute) -> str:
    """Return what tells one place from another. A route that is pointed elsewhere has delivered nothing there yet."""
    jira, hook = route.jira, route.webhook
    parts = [route.markdown.folder] if route.markdown else []
    parts += [route.github.api, route.github.repository] if route.github else []
    parts += [jira.url, jira.project] if jira else [hook.url] if hook else []
    return derive_id(*parts)


def open_sink(route: TicketRoute, root: Path, home: Path) -> TicketSink:
    """Return the sink of a route; relative paths start at `root`, the default's in `home`. Raises Trouble."""
    if route.markdown is not None:
        folder = route.markdown.folder
        return MarkdownFileSink(home / "tickets" if folder == DEFAULT_TICKET_FOLDER else root / folder)
    where, key = f"TicketRoute {route.name}", _read_secret(route, root)
    if route.github is not None:
        from assay.tickets.github_issues import GitHubIssueSink

        return GitHubIssueSink(route.github, key, where)
    if route.jira is not None:
        from assay.tickets.jira_issues import JiraIssueSink

        return JiraIssueSink(route.jira, key, where)
    assert route.webhook is not None
    from assay.tickets.signed_webhook import SignedWebhookSink

    return SignedWebhookSink(route.webhook, key, where)


def _read_secret(route: TicketRoute, root: Path) -> str:
    reference = route.credentials
    assert reference is not None
    where = f"TicketRoute {route.name} credentials"
    try:
        text = read_secret(reference, root)
    except AssayError as trouble:
        raise AssayError(trouble.what, where=where, fix=trouble.fix) from None
    if not text or not text.isprintable() or not text.isascii():
        state = "holds what cannot be sent in a header" if text else "is not set, or gives nothing"
        raise AssayError(
            f"{describe_reference(reference)} {state}", where=where, fix="put the token there, and nothing else"
        )
    return text
