"""Asks an `assay serve` instead of a fleet repository: for people and programs that have no copy of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode, urlsplit

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import option
from assay.cli.output import escape, make_table, open_console
from assay.model.errors import AssayError
from assay.model.facts import fact, from_json
from assay.model.text.csv_rows import format_csv
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from assay.decide.plan.inputs import PresentFacts
    from assay.tell.views.listings import NodeSummary

Server = Annotated[str, option("--server URL", "Ask this `assay serve`: https://HOST:8443.", envvar="ASSAY_SERVER")]
TokenFile = Annotated[
    Path | None, option("--token-file FILE", "The file with your token for it.", envvar="ASSAY_TOKEN_FILE")
]
ServerAuthority = Annotated[
    Path | None, option("--ca FILE", "The certificate that it is trusted by.", envvar="ASSAY_CA")
]
PAGE_NODES, TIMEOUT_S = 1000, 30.0


@fact
class ServerNodesAnswer:
    """The nodes that the server lets the visitor see."""

    nodes: list[NodeSummary]
    """The nodes that were asked for."""


class ServerError(AssayError):
    """The server does not answer, or refuses."""


class FleetServer:
    """The API of an `assay serve`. Raises AssayError where a token would travel in the clear, or has no file."""

    def __init__(self, url: str, token_file: Path | None, authority: Path | None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
            raise AssayError(f"{url!r} is no address of a server", fix="give https://HOST:PORT, or http on loopback")
        self._url, self._verify = url.rstrip("/"), str(authority) if authority else True
        self._headers = {"Authorization": f"Bearer {_read_token(token_file)}"} if token_file else {}

    def list_nodes(self) -> list[dict[str, Any]]:
        """Return every node that the server shows, page by page."""
        return list(self._page_nodes())

    def explain(self, node: str, last: int) -> dict[str, Any]:
        """Return why a node is in its state."""
        answer: dict[str, Any] = self._get(f"/nodes/{quote(node, safe='')}/explain", last=str(last))
        return answer

    def read_facts(self) -> PresentFacts:
        """Return what the server knows of the fleet, for a plan."""
        from assay.decide.plan.inputs import PresentFacts
        from assay.decide.state.node_state import NodeState

        answer = self._get("/facts")
        try:
            states = {name: from_json(NodeState, plain) for name, plain in answer["node_states"].items()}
            return from_json(PresentFacts, {**answer, "node_states": states})
        except (KeyError, TypeError, AttributeError) as error:
            fix = "use the same version of assay as the server"
            raise ServerError(f"the server answers in another form: {error!r}", where=self._url, fix=fix) from None

    def _page_nodes(self) -> Iterator[dict[str, Any]]:
        after = ""
        while True:
            page = self._get("/nodes", limit=str(PAGE_NODES), after=after)
            yield from page["nodes"]
            if not (after := page["next"]):
                return

    def _get(self, path: str, **query: str) -> Any:
        import requests

        url = f"{self._url}/api/v1{path}?{urlencode(query)}"
        try:
            reply = requests.get(
                url, headers=self._headers, verify=self._verify, timeout=TIMEOUT_S, allow_redirects=False
            )
            answer = reply.json()
        except (requests.RequestException, OSError) as error:
            raise ServerError(f"the server does not answer: {type(error).__name__}", where=self._url) from None
        if reply.status_code != 200:
            fix = "give --token-file FILE" if reply.status_code == 401 else ""
            raise ServerError(f"{answer.get('error', 'refused')} ({reply.status_code})", where=self._url, fix=fix)
        return answer


def print_nodes(nodes: list[dict[str, Any]], form: str) -> None:
    """Print the nodes that a server has listed."""
    if form == "json":
        typer.echo(format_answer({"nodes": nodes}, indent=1, ensure_ascii=False))
        return
    if form == "csv":
        typer.echo("\n".join(format_csv(list(nodes[0]) if nodes else ["node"], nodes)))
        return
    console, rows = open_console(), []
    for node in nodes:
        held = f"held by {node['held_by']}; " if node["held_by"] else ""
        pending = f" → {node['pending_to']}" if node["pending_to"] else ""
        cells = (node["node"], node["pool"], f"{node['state']}{pending}", format_minute(node["since"]))
        rows.append([*map(escape, (*cells, f"{held}{node['because']}"))])
    console.print(make_table(("node", "pool", "state", "since", "why"), rows, console.width))


def _read_token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise AssayError(f"the token cannot be read: {reason}", where=str(path)) from None
    if not token or not token.isascii() or not token.isprintable():
        raise AssayError("there is no token in the file", where=str(path))
    return token


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
