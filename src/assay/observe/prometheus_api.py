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

from assay.model.errors import Trouble
from assay.model.secrets import hidden
from assay.observe.trust import Trust
from assay.observe.wire import Line

LARGEST = 256 * 2**20
LATEST = 1e11  # seconds since 1970: the year 5138
Sign = Callable[[requests.PreparedRequest], requests.PreparedRequest]


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its labels (`__name__` among them) and its samples (seconds since 1970, number), oldest first."""

    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query found. `warnings`: why there may be more that was not found, from a service of many parts."""

    series: Sequence[Series]
    warnings: Sequence[str] = field(default=())


class Bearer(AuthBase):
    """Signs with a token, and keeps a password of ~/.netrc from taking its place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token, where there is one."""
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Prometheus:
    """One service at `url`; the whole of a query takes `timeout_s` at most. Methods raise Trouble."""

    def __init__(self, url: str, trust: Trust, sign: Sign, timeout_s: float) -> None:
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        self._session = requests.Session()
        self._session.auth = sign
        try:
            self._line = Line(trust.context(), trust.fingerprint)
        except OSError as error:
            raise Trouble(f"{trust.said} cannot be used: {error.strerror or error}", where=url) from None
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._line)

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def instant(self, query: str, at: float) -> Answer:
        """Return what a query finds at one time, in seconds since 1970; of a range (`m[5m]`) all samples in it."""
        return self._ask("query", {"query": query, "time": f"{at:.3f}"})

    def range(self, query: str, start: float, end: float, step_s: float) -> Answer:
        """Return what a query finds every `step_s` seconds from `start` to `end` (seconds since 1970)."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:.3f}"}
        return self._ask("query_range", {"query": query, **times})

    def _ask(self, kind: str, form: Mapping[str, str]) -> Answer:
        said = {**form, "timeout": f"{max(1, int(self._timeout_s * 1000))}ms"}
        with self._line.cut_after(self._timeout_s) as late:
            try:
                with self._session.post(
                    f"{self._url}/api/v1/{kind}", data=said, timeout=self._timeout_s, stream=True, allow_redirects=False
                ) as response:
                    return answer_of(_content(response), response.status_code)
            except Trouble as trouble:
                raise Trouble(trouble.what, where=self._url) from None
            except requests.exceptions.SSLError:
                raise Trouble("its certificate is not trusted", where=self._url) from None
            except (requests.RequestException, HTTPError, OSError) as error:
                in_vain = late.is_set() or isinstance(error, requests.Timeout)
                what = f"no answer within {self._timeout_s:.1f} s" if in_vain else "no connection, or one that broke"
                raise Trouble(what, where=self._url) from None


def _content(response: requests.Response) -> bytes:
    content = bytearray()
    for piece in response.iter_content(1 << 16):
        content += piece
        if len(content) > LARGEST:
            raise Trouble(f"answers with more than {LARGEST >> 20} MiB", fix="narrow `match` by a label of the site")
    return bytes(content)


def answer_of(content: bytes, status: int = 200) -> Answer:
    """Return what an answer of the API holds. Raises Trouble where it is none, or says why not."""
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise Trouble(f"answers {status}, and no JSON") from None
    if not isinstance(document, dict) or document.get("status") != "success" or status >= 300:
        told = document.get("error") if isinstance(document, dict) else None
        raise Trouble(f"answers {status}: {hidden(str(told or 'nothing that Prometheus says'))[:200]}")
    try:
        series = tuple(_series(one) for one in document["data"]["result"])
        warnings = tuple(str(one)[:200] for one in document.get("warnings") or ())
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Trouble("answers something that is not Prometheus's") from None
    return Answer(series, warnings)


def _series(one: Mapping[str, Any]) -> Series:
    labels = {str(name): str(text) for name, text in one["metric"].items()}
    points = one["values"] if "values" in one else [one["value"]]
    samples = [(float(at), float(number)) for at, number in points]
    if any(not 0 <= at < LATEST for at, _ in samples):
        raise ValueError("no time of this age")
    return Series(labels, samples)
