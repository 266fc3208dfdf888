"""Every reader of bytes that come from elsewhere: how it is called, what it may raise, and what it starts from.

A reader takes bytes and returns nothing; what it raises beside `may_raise` is a mistake. It is made by a function, so
that what it imports can be watched while it is imported.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.places import ROOT, TESTS

SAMPLES = Path(__file__).parent / "seeds"
DATA = TESTS / "data"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Reader:
    """`watched` is the module whose code is fuzzed by coverage; `seeds` are files, of `seeds/` or of other tests."""

    make: Callable[[], Read]
    watched: str
    seeds: Sequence[str | Path]


def logs() -> Read:
    from assay.cli.workspace import load_surrounding_catalog
    from assay.decide.faults.log_file_faults import LogFaultCollector
    from assay.model.errors import AssayError
    from assay.model.facts import to_json
    from assay.observe.logs.log_reader import LogReader

    catalog = load_surrounding_catalog(ROOT)

    def read(content: bytes) -> None:
        from assay.cli.verbs.faults import collect_log_faults

        log, stream = (
            LogReader(io.BytesIO(content).read, catalog.kernel_log_matcher, NOW, "here"),
            LogFaultCollector(catalog),
        )
        with contextlib.suppress(AssayError):
            collect_log_faults(log, stream, catalog)
            _keepable(to_json(stream.faults()))

    return read


def event_texts() -> Read:
    from assay.model.log_message import LineTally
    from assay.observe.logs.event_text import read_event_text

    return lambda content: _keepable(list(read_event_text(content.decode(errors="replace").splitlines(), LineTally())))


def packed_logs() -> Read:
    from assay.observe.logs.log_reader import unpack_text

    def read(content: bytes) -> None:
        source = unpack_text(io.BytesIO(content))
        while source.read(65536):
            pass

    return read


def log_lines() -> Read:
    from assay.observe.logs.line_envelope import read_envelope, split_line

    def read(content: bytes) -> None:
        line = content.decode(errors="replace")
        _keepable(split_line(line, NOW))
        _keepable(read_envelope(line, len(line), NOW).make_message(""))

    return read


def kmsg() -> Read:
    from assay.node.probe.kernel_log import parse_kernel_record

    return parse_kernel_record


def load_tools() -> Read:
    from assay.node.load_tools import dcgm, fio, network, nvbandwidth, site_commands, stress_tools
    from assay.node.load_tools.tool_call import ToolOutput

    parsers = (
        dcgm.parse_dcgm_diag,
        partial(dcgm.parse_dcgm_mndiag, own="n0001"),
        fio.parse_fio_verify,
        network.parse_iperf3,
        stress_tools.parse_gpu_fryer,
        site_commands.parse_hpl,
        network.parse_ib_write_bw,
        nvbandwidth.parse_nvbandwidth,
        stress_tools.parse_stressapptest,
        dcgm.parse_ubergemm,
        dcgm.parse_dcgmproftester,
    )

    def read(content: bytes) -> None:
        output = ToolOutput("tool", 226 if content[:1] == b" " else 0, content.decode(errors="replace"))
        for parse in parsers:
            _keepable(parse(output))

    return read


def fabric() -> Read:
    from assay.fabric.readers.format_detection import read_tool_output
    from assay.model.errors import AssayError

    def whole(content: bytes) -> None:
        with contextlib.suppress(AssayError):
            read_tool_output(content.decode(errors="replace"))

    return whole


def alerts() -> Read:
    from assay.adapters.prometheus.alerts import map_alert, parse_alertmanager_payload
    from assay.model.errors import AssayError
    from assay.model.specs.monitoring import AlertMapping

    rule = {"match": {"xid": "*"}, "fault": "gpu.xid.{xid}", "source": "here"}
    rules = AlertMapping.model_validate(
        {"node": ["node"], "part": {"pci_bus_id": "pci", "gpu": "index"}, "rules": [rule]}
    )

    def read(content: bytes) -> None:
        with contextlib.suppress(AssayError):
            for alert in parse_alertmanager_payload(content).alerts:
                map_alert(alert, rules, {"n1"})

    return read


def agents() -> Read:
    from assay.observe.transports.push import ClockOffset, build_delivered_evidence
    from assay.tell.server.batch_writer import BatchRefused
    from assay.tell.server.batch_writer import parse_batch as read_batch

    def read(content: bytes) -> None:
        with contextlib.suppress(BatchRefused):
            batch = read_batch(content, "n0003")
            for evidence in build_delivered_evidence("n0003", batch.list_deliveries(), ClockOffset(batch.now, NOW)):
                evidence.digest()

    return read


def evidence() -> Read:
    from assay.cli.workspace import load_surrounding_catalog
    from assay.model.errors import AssayError
    from assay.model.faults.sightings import find_kernel_sightings
    from assay.observe.evidence_contents import find_unanswered_branches, iterate_leaves
    from assay.observe.evidence_store import _parse

    catalog = load_surrounding_catalog(ROOT)

    def read(content: bytes) -> None:
        with contextlib.suppress(AssayError):
            found = _parse(content, Path("here"))
            _keepable([sighting.at for sighting in find_kernel_sightings(catalog, found, {})])
            for tree in found.channels.values() if isinstance(found.channels, dict) else ():
                list(iterate_leaves(tree))
                if isinstance(tree, dict):
                    find_unanswered_branches(tree)

    return read


def prometheus() -> Read:
    from assay.adapters.prometheus.client import parse_query_response
    from assay.adapters.prometheus.readings import (
        ScrapeContext,
        build_probe_readings,
        build_xid_lines,
        build_xid_readings,
        find_xid_changes,
    )
    from assay.declare.repository.tree import WorkingFolder
    from assay.declare.spec_reader import read_specs
    from assay.model.errors import AssayError
    from assay.model.specs.monitoring import Monitoring

    (exporters,) = (file.spec for file in read_specs(WorkingFolder(ROOT))[0] if isinstance(file.spec, Monitoring))

    def read(content: bytes) -> None:
        with contextlib.suppress(AssayError):
            series = parse_query_response(content).series
            _keepable(build_probe_readings(exporters, series, ScrapeContext(NOW.timestamp(), 180)))
            changes = find_xid_changes(series, (), "pci_bus_id")
            _keepable([build_xid_readings(series, changes, "pci_bus_id"), build_xid_lines(changes, None)])

    return read


def redfish() -> Read:
    """Read a whole tree, of which the bytes say what is changed: a property here and there into something odd."""
    from assay.adapters.bmc.client import BmcClient
    from assay.adapters.bmc.quirks import BmcQuirkSet
    from assay.adapters.bmc.session import UserPassword
    from assay.adapters.bmc.tls import CertificateTrust
    from assay.model.node import Node

    whole = json.loads((SAMPLES / "redfish-tree.json").read_text())

    class OnPaper(BmcClient):
        tree: dict[str, Any]

        def request(self, method: str, path: str, timeout_s: float = 1.0, **request: Any) -> Any:
            found = self.tree.get(path.rstrip("/")) if isinstance(path, str) else None
            return SimpleNamespace(status=200 if found is not None else 404, dict=found or {}, text="", read="")

    node = Node("n1", "a", "s", "r", 1, "S1", "hgx", "managed", bmc_address="127.0.0.1")

    def read(content: bytes) -> None:
        bmc = OnPaper(node, UserPassword("u", "p"), CertificateTrust(), BmcQuirkSet())
        bmc.tree = spoilt(whole, content)
        bmc.root = bmc.tree["/redfish/v1"]
        _keepable(bmc.read_channel(60.0, now=lambda: NOW))

    return read


ODD: Sequence[Any] = (
    None,
    [],
    {},
    "",
    0,
    -1,
    1e308,
    True,
    "0x",
    [None],
    {"@odata.id": 7},
    {"@odata.id": "/redfish/v1"},
)


def spoilt(whole: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return the tree with every third byte's resource, property and oddity put in; resources stay objects."""
    tree: dict[str, Any] = json.loads(json.dumps(whole))
    paths = sorted(tree)
    for at in range(0, min(len(content), 36) - 2, 3):
        resource = tree[paths[content[at] % len(paths)]]
        names = sorted(resource)
        resource[names[content[at + 1] % len(names)]] = ODD[content[at + 2] % len(ODD)]
    return tree


def _keepable(document: Any) -> None:
    """Hold what was read to what evidence must be: JSON without NaN, of whole letters."""
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode()


FABRIC = (
    *("ibnetdiscover.txt", "ibnetdiscover-p.txt", "iblinkinfo.txt", "db_csv.txt", "ufm_ports.json"),
    *("ibnetdiscover-f.txt", "iblinkinfo-grouped.txt"),
    *("ibqueryerrors.txt", "smpquery.txt"),
)


def histories() -> Read:
    from assay.decide.replay.history import read_history
    from assay.model.errors import AssayError

    def read(content: bytes) -> None:
        with contextlib.suppress(AssayError):
            for event in read_history(io.BytesIO(content), "here").events:
                _keepable({"detail": event.detail, "node": event.node, "fault": event.fault})

    return read


READERS = {
    "logs": Reader(
        logs,
        "assay.observe.logs",
        [
            *("dmesg.txt", "kmsg.txt", "syslog.txt", "sel.txt", "journal.json", "redfish-log.json"),
            *("journal-export.txt", "journal-verbose.txt", "journal-pretty.json", "loki.json"),
            *("dmesg-e.txt", "dmesg-colour.txt", "rfc5424.txt", "cri.txt", "bug-report.txt"),
        ],
    ),
    "event-texts": Reader(
        event_texts,
        "assay.observe.logs",
        [
            *("sel.txt", "sel-v.txt", "ipmi-sel.csv", "racadm.txt", "lclog.txt"),
            *("ribcl.xml", "hplog.txt"),
        ],
    ),
    "packed-logs": Reader(packed_logs, "assay.observe.logs.log_reader", ["dmesg.txt"]),
    "log-lines": Reader(log_lines, "assay.observe.logs.line_envelope", ["rfc5424.txt", "cri.txt", "dmesg.txt"]),
    "kmsg": Reader(kmsg, "assay.node.probe.kernel_log", ["kmsg.txt"]),
    "load-tools": Reader(
        load_tools,
        "assay.node.load_tools",
        [
            *(DATA / f"load-tools/{name}.json" for name in ("dcgm-diag", "dcgm-mndiag", "nvbandwidth", "ib_write_bw")),
            DATA / "load-tools/gpu-fryer.jsonl",
        ],
    ),
    "fabric": Reader(fabric, "assay.fabric", [TESTS / "fabric/readers/recordings" / name for name in FABRIC]),
    "alerts": Reader(alerts, "assay.adapters.prometheus.alerts", ["alerts.json"]),
    "agents": Reader(agents, "assay.tell.server", ["batch.json"]),
    "evidence": Reader(evidence, "assay.model", ["evidence.json"]),
    "prometheus": Reader(prometheus, "assay.adapters.prometheus.readings", ["prometheus.json"]),
    "histories": Reader(histories, "assay.decide.replay", ["history.jsonl"]),
    "redfish": Reader(redfish, "assay.adapters.bmc", ["odd-bytes"]),
}


def main(name: str, corpus: str, seconds: str) -> None:
    """Fuzz one reader for some seconds; the exit code is atheris's own: not 0 where it broke."""
    import atheris

    reader = READERS[name]
    with atheris.instrument_imports(include=[reader.watched]):
        read = reader.make()
    limits = [f"-max_total_time={seconds}", "-max_len=16384", "-timeout=30", "-rss_limit_mb=1536", "-seed=1"]
    atheris.Setup([sys.argv[0], corpus, *limits, f"-artifact_prefix={corpus}/../broke-"], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:4])
