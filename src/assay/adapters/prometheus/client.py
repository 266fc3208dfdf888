"""The client of Prometheus's HTTP API: instant and range queries, bounded in size and time, with verified TLS.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/ (Thanos and Mimir answer alike).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from assay.adapters.bmc.tls import CertificateTrust, DeadlineHttpAdapter
from assay.adapters.prometheus.readings import MetricSeries
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.text.safe_text import redact

MAX_RESPONSE_BYTES = 256 * 2**20
MAX_TIMESTAMP = 1e11  # seconds since 1970: the year 5138
RequestSigner = Callable[[requests.PreparedRequest], requests.PreparedRequest]


@frozen
class QueryResult:
    """The series of a query. `warnings` say why some may be missing, from a service of many parts."""

    series: Sequence[MetricSeries]
    warnings: Sequence[str] = field(default=())


class BearerAuth(AuthBase):
    """Signs requests with a token ("": none). Without an auth object, requests would use a password of ~/.netrc."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token's header where there is a token."""
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class PrometheusClient:
    """One service at `url`. A whole query takes at most `timeout_s`. Methods raise AssayError."""

    def __init__(self, url: str, trust: CertificateTrust, sign: RequestSigner, timeout_s: float) -> None:
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        self._session = requests.Session()
        self._session.auth = sign
        try:
            self._adapter = DeadlineHttpAdapter(trust.context(), trust.fingerprint)
        except OSError as error:
            raise AssayError(f"{trust.description} cannot be used: {error.strerror or error}", where=url) from None
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._adapter)

    def __enter__(self) -> PrometheusClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def query_instant(self, query: str, at: float) -> QueryResult:
        """Run a query at one time, in seconds since 1970. A range selector (`m[5m]`) gives all samples in its range."""
        return self._post("query", {"query": query, "time": f"{at:.3f}"})

    def query_range(self, query: str, start: float, end: float, step_s: float) -> QueryResult:
        """Run a query at every `step_s` seconds from `start` to `end` (seconds since 1970)."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:.3f}"}
        return self._post("query_range", {"query": query, **times})

    def _post(self, kind: str, parameters: Mapping[str, str]) -> QueryResult:
        form = {**parameters, "timeout": f"{max(1, int(self._timeout_s * 1000))}ms"}
        with self._adapter.cut_after(self._timeout_s) as late:
            try:
                with self._session.post(
                    f"{self._url}/api/v1/{kind}", data=form, timeout=self._timeout_s, stream=True, allow_redirects=False
                ) as response:
                    return parse_query_response(_read_content(response), response.status_code)
            except AssayError as error:
                raise AssayError(error.what, where=self._url) from None
            except requests.exceptions.SSLError:
                raise AssayError("its certificate is not trusted", where=self._url) from None
            except (requests.RequestException, HTTPError, OSError) as error:
                is_late = late.is_set() or isinstance(error, requests.Timeout)
                problem = f"no answer within {self._timeout_s:.1f} s" if is_late else "no connection, or one that broke"
                raise AssayError(problem, where=self._url) from None


def _read_content(response: requests.Response) -> bytes:
    content = bytearray()
    for piece in response.iter_content(1 << 16):
        content += piece
        if len(content) > MAX_RESPONSE_BYTES:
            raise AssayError(
                f"answers with more than {MAX_RESPONSE_BYTES >> 20} MiB", fix="narrow `match` by a label of the site"
            )
    return bytes(content)


def parse_query_response(content: bytes, status: int = 200) -> QueryResult:
    """Parse an answer of the API. Raises AssayError where it is an error or no such answer."""
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise AssayError(f"answers {status}, and no JSON") from None
    if not isinstance(document, dict) or document.get("status") != "success" or status >= 300:
        reason = document.get("error") if isinstance(document, dict) else None
        raise AssayError(f"answers {status}: {redact(str(reason or 'nothing that Prometheus says'))[:200]}")
    try:
        series = tuple(map(_parse_series, document["data"]["result"]))
        warnings = tuple(str(warning)[:200] for warning in document.get("warnings") or ())
    except (KeyError, TypeError, ValueError, AttributeError):
        raise AssayError("answers something that is not Prometheus's") from None
    return QueryResult(series, warnings)


def _parse_series(entry: Mapping[str, Any]) -> MetricSeries:
    labels = {str(name): str(text) for name, text in entry["metric"].items()}
    points = entry["values"] if "values" in entry else [entry["value"]]
    samples = [(float(at), float(number)) for at, number in points]
    if any(not 0 <= at < MAX_TIMESTAMP for at, _ in samples):
        raise ValueError("no time of this age")
    return MetricSeries(labels, samples)
