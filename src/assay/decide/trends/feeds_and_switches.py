"""What feeds and connects the parts of the fleet itself: the PDU by the inventory, the leaf switch by the design."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from assay.model.node import Node

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FEEDS = "UPDATE holders SET pdu = fed.pdu FROM fed WHERE holders.node = fed.node"
_SWITCHES = """
UPDATE holders SET switch = connected.switch FROM connected
WHERE holders.node = connected.node AND holders.subject = connected.subject
"""


def name_feeds_and_switches(
    database: DuckDBPyConnection, nodes: Iterable[Node], switches: Mapping[tuple[str, str], str]
) -> None:
    """Name the PDU and the switch of each holder in the tables of `open_fleet_tables`.

    They are those of today: who changed a cable, or a design, has moved the past too. `switches`: by node and place.
    """
    feeds = [(one.name, f"{one.site}/{one.settings.pdu}") for one in nodes if one.settings.pdu]
    _fill(database, "fed (node VARCHAR, pdu VARCHAR)", feeds)
    database.execute(_FEEDS)
    connected = [(*at, switch) for at, switch in switches.items()]
    _fill(database, "connected (node VARCHAR, subject VARCHAR, switch VARCHAR)", connected)
    database.execute(_SWITCHES)


def _fill(database: DuckDBPyConnection, table: str, rows: Iterable[tuple[str, ...]]) -> None:
    database.execute(f"CREATE OR REPLACE TABLE {table}")
    appender = database.appender(table.partition(" ")[0])
    appender.append_rows(list(rows))
    appender.flush()
