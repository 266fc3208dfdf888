"""Alertmanager's webhook: alerts become faults once, what no rule knows is noted, and nothing is dropped silently."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.ingest.alertmanager_alerts import AlertCounts, record_alerts
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.adapters.prometheus.alerts import map_alert, parse_alertmanager_payload
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT
from tests.support.site_of_agents import PATIENCE_S, Site, digest

TOKEN = "token-of-alertmanager-77d0"
BEGAN = datetime.now(UTC) - timedelta(minutes=1)
XID = {"alertname": "GpuXid", "Hostname": "n0003", "pci_bus_id": "00000000:1B:00.0", "xid": "79"}


def alert(status: str = "firing", after_s: float = 0, fingerprint: str = "f1", **labels: str) -> dict[str, Any]:
    return {
        "status": status,
        "labels": labels or XID,
        "annotations": {"summary": "it happened"},
        "startsAt": (BEGAN + timedelta(seconds=after_s)).isoformat(),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus/graph",
        "fingerprint": fingerprint,
    }


def payload(*alerts: dict[str, Any]) -> bytes:
    whole = {"version": "4", "groupKey": "{}", "status": "firing", "receiver": "assay", "groupLabels": {}}
    return json.dumps({**whole, "commonLabels": {}, "commonAnnotations": {}, "alerts": alerts}).encode()


class Room:
    """The example fleet's ledger, and alarms that write into it."""

    def __init__(self, fleet: Fleet, home: Path) -> None:
        self.fleet, self.said = fleet, list[str]()
        self.ledger = Ledger.open(home / "ledger.sqlite")
        self.desk = ControllerContext(
            fleet, self.ledger, EvidenceStore(home / "evidence"), SystemClock(), home, home / "reports"
        )
        enroll_nodes(self.desk)
        self.enrolled = self.ledger.head()

    def take(self, *alerts: dict[str, Any], pools: Sequence[str] = ()) -> Any:
        rules = self.fleet.monitorings["exporters"].alerts
        assert rules is not None
        rules = rules.model_copy(update={"pools": list(pools)})
        read = parse_alertmanager_payload(payload(*alerts))
        mapped = [map_alert(one, rules, self.fleet.nodes) for one in read.alerts]
        return record_alerts(self.desk, mapped, self.said.append)

    def entries(self, kind: str) -> list[Any]:
        return self.ledger.entries(kinds=[kind])


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture
def room(fleet: Fleet, tmp_path: Path) -> Iterator[Room]:
    found = Room(fleet, tmp_path)
    yield found
    found.ledger.close()


def test_an_alert_with_an_xid_is_that_xid_of_that_gpu(room: Room) -> None:
    assert room.take(alert()) == AlertCounts(1, 0, 0, unnoted=0, entries=1)
    (fault,) = room.entries("fault")
    assert (fault.node, fault.body["class"], fault.body["subject"]) == ("n0003", "gpu.xid.79", "h100-a/n0003/gpu0")
    assert fault.body["detail"] == "alert GpuXid: it happened"
    assert datetime.fromisoformat(fault.body["first_seen"]) == BEGAN


def test_what_is_sent_again_is_not_counted_again_and_what_begins_anew_is(room: Room) -> None:
    for _ in range(3):
        room.take(alert())
    assert [entry.body["count"] for entry in room.entries("fault")] == [1]
    room.take(alert(after_s=30))
    assert [entry.body["count"] for entry in room.entries("fault")] == [1, 2]


def test_an_alert_that_no_rule_knows_is_told_and_counted_and_touches_no_node(room: Room) -> None:
    labels = {"alertname": "DiskAlmostFull", "instance": "n0004:9100"}
    counts = room.take(alert(**labels), alert("resolved", fingerprint="f2", **labels))
    assert (counts.unmapped, counts.unplaced) == (2, 2)
    (kept,) = room.ledger.entries(after=room.enrolled)
    assert (kept.kind, kept.node, kept.body["alerts"]) == ("alert.elsewhere", "", 2)
    told = "alert DiskAlmostFull (alertname=DiskAlmostFull, instance=n0004:9100)"
    assert room.said == [f"{told}: no rule says what it is; it touches no node"]


def test_an_alert_speaks_only_of_the_pools_that_git_gives_it(room: Room) -> None:
    """Whoever has this Prometheus's token names any node: a rule in git says of which it may speak."""
    told = [alert(**{**XID, "Hostname": name}) for name in ("n0003", "n0017")]
    assert room.take(*told, pools=["byo-b"]).unplaced == 1
    assert [(fault.node, fault.body["class"]) for fault in room.entries("fault")] == [("n0017", "gpu.xid.79")]
    labels = "Hostname=n0003, alertname=GpuXid, pci_bus_id=00000000:1B:00.0, xid=79"
    assert room.said == [f"alert GpuXid ({labels}): of no node of which it may speak; it touches no node"]


def test_an_alert_of_no_node_of_ours_is_told_and_kept(room: Room) -> None:
    assert room.take(alert(alertname="EtcdDown", instance="10.1.1.1:2379")).unplaced == 1
    (kept,) = room.entries("alert.elsewhere")
    assert (kept.node, kept.body["alert"]) == ("", "EtcdDown")
    assert "alert EtcdDown (alertname=EtcdDown, instance=10.1.1.1:2379): no rule says what it is" in room.said[0]


def test_alerts_of_no_node_of_ours_are_counted_in_one_entry_an_hour(room: Room) -> None:
    strange = [alert(alertname=f"Strange{n}", instance="10.1.1.1:1", fingerprint=f"s{n}") for n in range(50)]
    room.take(*strange)
    counts = room.take(*strange)
    assert (counts.unplaced, counts.unnoted, counts.entries) == (50, 50, 0)
    (kept,) = room.entries("alert.elsewhere")
    assert kept.body["alerts"] == 50
    assert len(room.said) == 1


def test_a_resolved_alert_is_noted_and_ends_only_what_its_rule_lets_it_end(room: Room) -> None:
    hot = {"alertname": "GpuHot", "node": "n0003", "gpu": "3"}
    room.take(alert(), alert(fingerprint="f2", **hot))
    room.take(alert("resolved"), alert("resolved", fingerprint="f2", **hot))
    assert len(room.entries("alert.resolved")) == 2
    (over,) = room.entries("fault.cleared")
    ended = {entry.body["fault"]: entry.body["class"] for entry in room.entries("fault")}[over.body["fault"]]
    assert (ended, over.body["because"]) == ("gpu.thermal", "the alert GpuHot is resolved")
    room.take(alert("resolved", fingerprint="f2", **hot))
    assert len(room.entries("alert.resolved")) == 2


def test_an_alert_that_never_fired_here_and_is_over_changes_nothing_but_is_noted(room: Room) -> None:
    room.take(alert("resolved", alertname="NodeDown", node="n0003"))
    assert (len(room.entries("alert.resolved")), room.entries("fault.cleared"), room.entries("fault")) == (1, [], [])


@pytest.mark.parametrize(
    "labels",
    [{"xid": "../../x"}, {"xid": "79; rm"}, {"xid": ""}],
)
def test_a_label_that_makes_no_name_makes_no_fault_of_that_name(fleet: Fleet, labels: dict[str, str]) -> None:
    rules = fleet.monitorings["exporters"].alerts
    assert rules is not None
    (read,) = parse_alertmanager_payload(payload(alert(**{**XID, **labels}))).alerts
    found = map_alert(read, rules, fleet.nodes)
    assert (found.fault, found.node) == ("", "")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"version":"3","alerts":[]}', b'{"version":"4","alerts":[{}]}', b"[" * 100_000]
)
def test_what_is_no_payload_is_refused_in_plain_words(body: bytes) -> None:
    with pytest.raises(AssayError, match="no alerts of Alertmanager's version 4"):
        parse_alertmanager_payload(body)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=4), st.text(max_size=12))
def test_any_labels_make_a_fault_with_a_proper_name(labels: dict[str, str], name: str) -> None:
    from assay.model.specs.monitoring import AlertMapping

    rules = AlertMapping.model_validate(
        {
            "node": ["node"],
            "part": {"gpu": "index"},
            "rules": [{"match": {"xid": "*"}, "fault": "a.{xid}", "source": "s"}],
        }
    )
    with contextlib.suppress(AssayError):
        (read,) = parse_alertmanager_payload(payload(alert(**{**labels, "alertname": name, "xid": name}))).alerts
        found = map_alert(read, rules, {})
        assert found.fault == found.fault.lower()
        assert not set(found.fault) - set("abcdefghijklmnopqrstuvwxyz0123456789.-")


def test_over_https_only_the_token_opens(site: Site) -> None:
    spec = site.fleet / "specs/monitoring/exporters.yaml"
    text = spec.read_text().replace("{env: ASSAY_ALERTS_TOKEN}", f"{{sha256: {digest(TOKEN)}}}")
    spec.write_text(text.replace("{env: ASSAY_SIGNALS_TOKEN}", f"{{sha256: {digest(TOKEN)}}}"))
    site.serve()

    def post(
        token: str, where: str = "exporters", body: bytes = payload(alert()), door: str = "alertmanager"
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{site.url}/{door}/v1/{where}", body, headers)
        context = ssl.create_default_context(cafile=str(site.home / "ca.pem"))
        try:
            with urllib.request.urlopen(request, context=context, timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    assert post(TOKEN) == (200, {"taken": 1, "unmapped": 0, "elsewhere": 0})
    assert [fault.body["class"] for fault in site.faults()] == ["gpu.xid.79"]
    assert post("guess")[0] == post("")[0] == post(f"sha256:{digest(TOKEN)}")[0] == post(TOKEN, "others")[0] == 401
    assert post(TOKEN, body=b"{}")[0] == 422
    report = b'{"signals": [{"source": "gpud", "node": "n0003", "class": "memory"}]}'
    assert post(TOKEN, "exporters", report, door="signals") == (200, {"taken": 1, "unmapped": 0, "elsewhere": 0})
    assert [fault.body["class"] for fault in site.faults()][-1] == "signal.memory"
    assert post("guess", "exporters", report, door="signals")[0] == 401
    assert post(TOKEN, "exporters", b"{}", door="signals")[0] == 422
    assert 429 in _guesses(site, 300)
    assert post(TOKEN)[0] == 200, "who guesses shuts nobody out"
    assert TOKEN not in site.log("serve")


def _guesses(site: Site, most: int) -> Iterator[int]:
    """Guess on one line, since a busy machine that greets anew each time is slower than what it forgives."""
    context, where = ssl.create_default_context(cafile=str(site.home / "ca.pem")), urlsplit(site.url)
    line = http.client.HTTPSConnection(where.hostname or "", where.port, context=context, timeout=PATIENCE_S)
    with contextlib.closing(line):
        for _ in range(most):
            line.request("POST", "/alertmanager/v1/exporters", payload(alert()), {"Authorization": "Bearer guess"})
            answer = line.getresponse()
            answer.read()
            yield answer.status
