"""The parts of a monitored site: an exporter of ours with dcgm-exporter's names, and the real programs around it."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from assay.declare.home import find_home
from assay.tell.server.agent_tokens import READER_TOKEN
from tests.support.reserved_ports import reserve_ports
from tests.support.site_of_agents import PATIENCE_S, Site, digest

PROGRAMS = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")
TOKEN = "token-of-alertmanager-51ab"
LABELS = 'gpu="0",UUID="GPU-1",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H100",Hostname="n0003"'
PROMETHEUS = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{alertmanager}']}}]}}]}}
scrape_configs:
- {{job_name: dcgm, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}
- job_name: assay
  scheme: https
  tls_config: {{ca_file: {ca}}}
  authorization: {{credentials_file: {reader}}}
  static_configs: [{{targets: ['{assay}']}}]
- {{job_name: node, static_configs: [{{targets: ['127.0.0.1:{node}'], labels: {{node: n0003}}}}]}}
"""
RULES = """
groups:
- name: gpu
  rules:
  - alert: GpuXid
    expr: DCGM_FI_DEV_XID_ERRORS > 0
    labels: {xid: '{{ $value }}'}
    annotations: {summary: 'XID {{ $value }} on {{ $labels.Hostname }}'}
  - {alert: StrangeLight, expr: DCGM_FI_DEV_GPU_TEMP > 200}
"""
ALERTMANAGER = """
route: {{receiver: assay, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
receivers:
- name: assay
  webhook_configs:
  - url: {url}/alertmanager/v1/exporters
    send_resolved: true
    http_config: {{tls_config: {{ca_file: {ca}}}, authorization: {{credentials_file: {token}}}}}
"""


class Monitored:
    """`gauges` is what the exporter of n0003's first GPU says; `site` is where alerts arrive."""

    def __init__(self, home: Path) -> None:
        self.home, self.site = home, Site(home)
        self.gauges = {"DCGM_FI_DEV_GPU_TEMP": 41, "DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_DEV_FB_USED": 3}
        self.ports = dict(zip(("prometheus", "alertmanager", "node"), reserve_ports(3), strict=True))
        self.exporter = ThreadingHTTPServer(("127.0.0.1", 0), _exporter(self.gauges))
        self.running: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['prometheus']}"

    def start(self) -> None:
        """Start everything, and wait until the first samples are in."""
        spec = self.site.fleet / "specs/monitoring/exporters.yaml"
        spec.write_text(spec.read_text().replace("{env: ASSAY_ALERTS_TOKEN}", f"{{sha256: {digest(TOKEN)}}}"))
        threading.Thread(target=self.exporter.serve_forever, daemon=True).start()
        self.site.serve()
        self._configure()
        node = f"127.0.0.1:{self.ports['node']}"
        self._run("prometheus-node-exporter", f"--web.listen-address={node}")
        self._run(
            "prometheus-alertmanager",
            "--config.file=alertmanager.yml",
            "--storage.path=alerts",
            f"--web.listen-address=127.0.0.1:{self.ports['alertmanager']}",
            "--cluster.listen-address=",
        )
        self._run(
            "prometheus",
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=samples",
            f"--web.listen-address=127.0.0.1:{self.ports['prometheus']}",
        )
        self.site.wait_for(lambda: self.has("DCGM_FI_DEV_GPU_TEMP") and self.has("node_uname_info"), "samples come")

    def has(self, metric: str) -> bool:
        """Whether Prometheus has a sample of a metric."""
        try:
            return bool(self.query(metric))
        except (urllib.error.URLError, OSError):
            return False

    def query(self, expression: str) -> list[float]:
        """Return the values of all series of a PromQL expression."""
        words = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{words}", timeout=PATIENCE_S) as answer:
            return [float(series["value"][1]) for series in json.load(answer)["data"]["result"]]

    def end(self) -> None:
        self.exporter.shutdown()
        self.exporter.server_close()
        for process in self.running:
            process.kill()
            process.wait(PATIENCE_S)
        self.site.end()

    def _configure(self) -> None:
        ports = {**self.ports, "exporter": self.exporter.server_port, "assay": f"127.0.0.1:{self.site.port}"}
        (self.home / "token").write_text(TOKEN)
        paths = {"ca": self.home / "ca.pem", "reader": find_home(self.site.fleet).folder.absolute() / READER_TOKEN}
        (self.home / "prometheus.yml").write_text(PROMETHEUS.format(**ports, **paths))
        (self.home / "rules.yml").write_text(RULES)
        told = {"url": self.site.url, "ca": self.home / "ca.pem", "token": self.home / "token"}
        (self.home / "alertmanager.yml").write_text(ALERTMANAGER.format(**told))

    def _run(self, *command: str) -> None:
        with (self.home / f"{command[0]}.log").open("wb") as log:
            self.running.append(
                subprocess.Popen(command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            )


def _exporter(gauges: dict[str, int]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = "".join(f"{name}{{{LABELS}}} {number}\n" for name, number in gauges.items()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    return Handler
