"""The page of all metrics, docs/metrics.md, from the list of families."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from assay.tell.metrics.families import FAMILIES, LABELS, Family

HEAD = """\
# Metrics

This page is generated: `make schemas`.

Prometheus reads the metrics of assay. The counters count the whole history in the ledger, so a restart loses nothing.
No label takes its values from devices: a family has at most as many series as the fleet has pools, states, checks and
so on. Only families with the label `node` grow with the nodes that are out of service, up to 500 series.

Ages are by the fleet's clock. Where nothing is to be counted, a family says 0, with `none` for its labels but `pool`.

## Read them

| where | how |
|---|---|
| `assay serve` | `https://HOST:8443/metrics` |
| `assay reconcile --metrics 127.0.0.1:9464` | `http://127.0.0.1:9464/metrics` |
| `assay metrics --to /var/lib/node_exporter/assay.prom` | node_exporter's textfile collector; call it every minute |

All three give the same numbers of the fleet, since they count the same ledger. Scrape one of them.

A Prometheus shows the token in `.assay/reader-token`, which only assay's user can read, or that of a Monitoring in
`specs/monitoring/`. The spec holds its digest, or says where it is:

```yaml
metrics_token: {sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}
```

In prometheus.yml: `authorization: {credentials_file: /etc/prometheus/assay-token}`. The server of `assay reconcile`
has no TLS: on another address than loopback, put a proxy with TLS before it.

`/readyz` is 200 if the ledger answers, the fleet's files are good and (in `assay serve`) deliveries can be written.
Else it is 503 and says what is not. `/healthz` is 200 while the process works. Let a load balancer of agents ask
`/healthz`: when somebody merges a mistake into the fleet, `assay serve` goes on with the fleet that it read before,
and should be reached.
"""


def format_metrics_page() -> str:
    """Return the page."""
    tables = (f"\n## {subject}\n\n{_format_table(families)}" for subject, families in FAMILIES.items())
    return HEAD + "".join(tables) + "\n## Labels\n\n" + _format_labels()


def _format_table(families: Sequence[Family]) -> str:
    rows = (f"| `{one.name}` | {one.type} | {', '.join(one.labels)} | {one.unit} | {one.help} |\n" for one in families)
    return "| family | type | labels | unit | what it says |\n|---|---|---|---|---|\n" + "".join(rows)


def _format_labels() -> str:
    used = {label for one in chain.from_iterable(FAMILIES.values()) for label in one.labels}
    rows = (f"| `{label}` | {text} |\n" for label, text in LABELS.items() if label in used)
    return "| label | values |\n|---|---|\n" + "".join(rows)
