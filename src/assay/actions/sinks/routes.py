"""From the routes that a fleet declares to sinks that can be used."""

from __future__ import annotations

from pathlib import Path

from assay.actions.sinks.markdown import MarkdownFiles
from assay.actions.sinks.sink import Sink
from assay.model.entry import derived_id
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.ticket_route import FOLDER, Markdown, TicketRoute
from assay.observe.references import called, secret

DEFAULT = TicketRoute(kind="TicketRoute", name="files", markdown=Markdown())


def routes_of(fleet: Fleet, home: Path) -> list[TicketRoute]:
    """Return the declared routes, or, where there is none, the one to Markdown files.

    A fleet that lives in a lab writes files only: nobody is to be sent to a node that does not exist.
    """
    rehearsed = (home / "lab" / "clock.json").exists()
    routes = [one for one in fleet.routes.values() if one.markdown is not None or not rehearsed]
    return routes or [DEFAULT]


def destination(route: TicketRoute) -> str:
    """Return what tells one place from another. A route that is pointed elsewhere has delivered nothing there yet."""
    jira, hook = route.jira, route.webhook
    parts = [route.markdown.folder] if route.markdown else []
    parts += [route.github.api, route.github.repository] if route.github else []
    parts += [jira.url, jira.project] if jira else [hook.url] if hook else []
    return derived_id(*parts)


def sink_of(route: TicketRoute, root: Path, home: Path) -> Sink:
    """Return the sink of a route; relative paths start at `root`, the default's in `home`. Raises Trouble."""
    if route.markdown is not None:
        folder = route.markdown.folder
        return MarkdownFiles(home / "tickets" if folder == FOLDER else root / folder)
    where, key = f"TicketRoute {route.name}", _secret(route, root)
    if route.github is not None:
        from assay.actions.sinks.github import GitHubIssues

        return GitHubIssues(route.github, key, where)
    if route.jira is not None:
        from assay.actions.sinks.jira import JiraIssues

        return JiraIssues(route.jira, key, where)
    assert route.webhook is not None
    from assay.actions.sinks.webhook import SignedWebhook

    return SignedWebhook(route.webhook, key, where)


def _secret(route: TicketRoute, root: Path) -> str:
    reference = route.credentials
    assert reference is not None
    where = f"TicketRoute {route.name} credentials"
    try:
        text = secret(reference, root)
    except Trouble as trouble:
        raise Trouble(trouble.what, where=where, fix=trouble.fix) from None
    if not text or not text.isprintable() or not text.isascii():
        state = "holds what cannot be sent in a header" if text else "is not set, or gives nothing"
        raise Trouble(f"{called(reference)} {state}", where=where, fix="put the token there, and nothing else")
    return text
