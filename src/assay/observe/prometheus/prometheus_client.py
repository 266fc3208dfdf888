"""Prometheus's HTTP API: instant and range queries, bounded in size and time, over a line that is verified.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/ (Thanos and Mimir answer alike).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from assay.model.errors import AssayError
from assay.model.secret_redaction import redact
from assay.redfish.tls_connection import CertificateTrust, DeadlineHttpAdapter

MAX_RESPONSE_BYTES = 256 * 2**20
MAX_TIMESTAMP = 1e11  # seconds since 1970: the year 5138
RequestSigner = Callable[[requests.PreparedRequest], requests.PreparedRequest]


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One series: its labels (`__name__` among them) and its samples (seconds since 1970, number), oldest first."""

    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query found. `warnings`: why there may be more that was not found, from a service of many parts."""

    series: Sequence[MetricSeries]
    warnings: Sequence[str] = field(default=())


class BearerAuth(AuthBase):
    """Signs with a token, and keeps a password of ~/.netrc from taking its place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token, where there is one."""
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class PrometheusClient:
    """One service at `url`; the whole of a query takes `timeout_s` at most. Methods raise Trouble."""

    def __init__(self, url: str, trust: CertificateTrust, sign: RequestSigner, timeout_s: float) -> None:
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        self._session = requests.Session()
        self._session.auth = sign
        try:
            self._line = DeadlineHttpAdapter(trust.context(), trust.fingerprint)
        except OSError as error:
            raise AssayError(f"{trust.description} cannot be used: {error.strerror or error}", where=url) from None
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._line)

    def __enter__(self) -> PrometheusClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def query_instant(self, query: str, at: float) -> QueryResult:
        """Return what a query finds at one time, in seconds since 1970; of a range (`m[5m]`) all samples in it."""
        return self._ask("query", {"query": query, "time": f"{at:.3f}"})

    def query_range(self, query: str, start: float, end: float, step_s: float) -> QueryResult:
        """Return what a query finds every `step_s` seconds from `start` to `end` (seconds since 1970)."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:.3f}"}
        return self._ask("query_range", {"query": query, **times})

    def _ask(self, kind: str, form: Mapping[str, str]) -> QueryResult:
        said = {**form, "timeout": f"{max(1, int(self._timeout_s * 1000))}ms"}
        with self._line.cut_after(self._timeout_s) as late:
            try:
                with self._session.post(
                    f"{self._url}/api/v1/{kind}", data=said, timeout=self._timeout_s, stream=True, allow_redirects=False
                ) as response:
                    return parse_query_response(_content(response), response.status_code)
            except AssayError as trouble:
                raise AssayError(trouble.what, where=self._url) from None
            except requests.exceptions.SSLError:
                raise AssayError("its certificate is not trusted", where=self._url) from None
            except (requests.RequestException, HTTPError, OSError) as error:
                in_vain = late.is_set() or isinstance(error, requests.Timeout)
                what = f"no answer within {self._timeout_s:.1f} s" if in_vain else "no connection, or one that broke"
                raise AssayError(what, where=self._url) from None


def _content(response: requests.Response) -> bytes:
    content = bytearray()
    for piece in response.iter_content(1 << 16):
        content += piece
        if len(content) > MAX_RESPONSE_BYTES:
            raise AssayError(
                f"answers with more than {MAX_RESPONSE_BYTES >> 20} MiB", fix="narrow `match` by a label of the site"
            )
    return bytes(content)


def parse_query_response(content: bytes, status: int = 200) -> QueryResult:
    """Return what an answer of the API holds. Raises Trouble where it is none, or says why not."""
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise AssayError(f"answers {status}, and no JSON") from None
    if not isinstance(document, dict) or document.get("status") != "success" or status >= 300:
        told = document.get("error") if isinstance(document, dict) else None
        raise AssayError(f"answers {status}: {redact(str(told or 'nothing that Prometheus says'))[:200]}")
    try:
        series = tuple(_series(one) for one in document["data"]["result"])
        warnings = tuple(str(one)[:200] for one in document.get("warnings") or ())
    except (KeyError, TypeError, ValueError, AttributeError):
        raise AssayError("answers something that is not Prometheus's") from None
    return QueryResult(series, warnings)


def _series(one: Mapping[str, Any]) -> MetricSeries:
    labels = {str(name): str(text) for name, text in one["metric"].items()}
    points = one["values"] if "values" in one else [one["value"]]
    samples = [(float(at), float(number)) for at, number in points]
    if any(not 0 <= at < MAX_TIMESTAMP for at, _ in samples):
        raise ValueError("no time of this age")
    return MetricSeries(labels, samples)
