"""Ironic and MAAS as their published APIs describe them: what the real ones refuse, these refuse.

Ironic: Bare Metal API v1, microversion 1.82, https://docs.openstack.org/api-ref/baremetal/ (update node, change
provision state), with the states and verbs of openstack/ironic, ironic/common/states.py at 0370f5ac. MAAS: API 2.0
of MAAS 3.3 or newer, which names operations in the path, https://maas.io/docs/api, with the parameters of
canonical/maas, src/maasserver/api/machines.py at 01252086, and its OAuth 1.0 with PLAINTEXT signatures.
"""

from __future__ import annotations

import email
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN, API_KEY = "gAAAAAB-token", "consumer:token:key"
Answer = tuple[int, Any]


class Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def demand(fact: object, status: int, why: str) -> None:
    if not fact:
        raise Refused(status, why)


IRONIC_VERBS = {
    "active": ("available", "deploy failed"),
    "rebuild": ("active", "deploy failed", "error"),
    "deleted": ("active", "deploy failed", "error", "wait call-back"),
    "manage": ("enroll", "available", "clean failed", "inspect failed", "adopt failed"),
    "provide": ("manageable",),
}
"""The states from which a target may be asked for."""
IRONIC_BUSY = ("deploying", "wait call-back", "deleting", "cleaning", "clean wait", "verifying")
IRONIC_PROVISION = {"target", "configdrive", "clean_steps", "deploy_steps", "rescue_password", "disable_ramdisk"}
NEWEST_OF_IRONIC = 82


class Ironic:
    """One node, `active`. `installs` is called once it is rebuilt, with the image's source."""

    def __init__(self, node: str, installs: Callable[[str], None]) -> None:
        self.node, self.installs = node, installs
        self.state, self.instance_info = "active", dict[str, Any]()
        self.asked: list[str] = []

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> Answer:
        demand(headers.get("X-Auth-Token") == TOKEN, 401, "The request you have made requires authentication.")
        version = headers.get("X-OpenStack-Ironic-API-Version", "1.1")
        demand(re.fullmatch(r"1\.\d+|latest", version), 406, "Invalid value for X-OpenStack-Ironic-API-Version header")
        found = re.fullmatch(r"/v1/nodes/([^/]+)(/states/provision)?", path)
        demand(found and found[1] == self.node, 404, f"Node {path} could not be found.")
        minor = NEWEST_OF_IRONIC if version == "latest" else int(version.partition(".")[2])
        demand(minor <= NEWEST_OF_IRONIC, 406, f"Version {version} was requested, and 1.1 to 1.82 are supported")
        demand(minor >= 5, 404, "Names of nodes need API version 1.5.")
        if method == "GET" and found and not found[2]:
            return 200, {"name": self.node, "provision_state": self.state, "instance_info": self.instance_info}
        demand(headers.get("Content-Type") == "application/json", 415, "JSON is expected")
        self.asked.append(f"{method} {path}")
        return self._patch(json.loads(body)) if method == "PATCH" else self._provision(method, json.loads(body))

    def _patch(self, patch: Any) -> Answer:
        demand(isinstance(patch, list), 400, "a JSON patch is a list")
        demand(
            self.state not in IRONIC_BUSY,
            409,
            f"Node {self.node} can not be updated while a state transition is in progress.",
        )
        for change in patch:
            demand(set(change) <= {"op", "path", "value"}, 400, f"unexpected fields in {change}")
            demand(change["op"] in ("add", "replace", "remove"), 400, f"invalid op {change['op']}")
            demand("value" in change or change["op"] == "remove", 400, "'value' is a required property")
            demand(change["path"].startswith("/instance_info/"), 400, f"{change['path']} is not changed by this test")
            self.instance_info[change["path"].rpartition("/")[2]] = change.get("value")
        return 200, {"name": self.node}

    def _provision(self, method: str, body: Any) -> Answer:
        demand(method == "PUT", 405, "Method Not Allowed")
        unknown = set(body) - IRONIC_PROVISION
        demand(not unknown, 400, f"Unknown argument: {unknown}")
        target = body.get("target")
        demand(target in IRONIC_VERBS, 400, f"Invalid target state {target}")
        demand(self.state not in IRONIC_BUSY, 409, f"Node {self.node} is locked")
        allowed = self.state in IRONIC_VERBS[target]
        words = f'The requested action "{target}" can not be performed on node "{self.node}" while it is in state'
        demand(allowed, 400, f'{words} "{self.state}".')
        demand(target in ("active", "rebuild"), 500, "this test follows deployments alone")
        demand("image_source" in self.instance_info, 400, "image_source is missing in instance_info")
        self.state = "deploying"
        threading.Timer(0.1, setattr, [self, "state", "wait call-back"]).start()
        threading.Timer(0.4, self._end).start()
        return 202, None

    def _end(self) -> None:
        self.state = "active"
        self.installs(self.instance_info["image_source"])


FIELDS = {
    "release": {"comment", "erase", "secure_erase", "quick_erase", "force"},
    "deploy": {
        *("user_data", "osystem", "distro_series", "hwe_kernel", "agent_name", "comment", "ephemeral_deploy"),
        *("bridge_all", "bridge_type", "bridge_stp", "bridge_fd", "install_rackd", "install_kvm"),
        "vcenter_registration",
    },
}
MAAS_FROM = {
    "release": ("Deployed", "Allocated", "Deploying", "Failed deployment", "Releasing failed", "Broken"),
    "deploy": ("Ready", "Allocated"),
}
"""The states in which an operation is taken; a Ready machine is allocated to the one who deploys it."""


class Maas:
    """One machine, `Deployed`. `installs` is called once it is deployed, with the series."""

    def __init__(self, system_id: str, installs: Callable[[str], None]) -> None:
        self.system_id, self.installs = system_id, installs
        self.state, self.nonces = "Deployed", set[str]()
        self.asked: list[str] = []

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> Answer:
        self._authenticate(headers.get("Authorization", ""))
        found = re.fullmatch(r"/MAAS/api/2\.0/machines/([^/]+)/(?:op-([^/]+))?", path)
        demand(found and found[1] == self.system_id, 404, "No Machine matches the given query.")
        operation = (found[2] if found else "") or ""
        if method == "GET" and not operation:
            return 200, {"system_id": self.system_id, "status_name": self.state}
        known = method == "POST" and operation in FIELDS
        demand(known, 400, f"Unrecognised signature: method={method} op={operation or None}")
        self.asked.append(f"{method} {path}")
        kind = headers.get("Content-Type", "")
        fields = dict[str, str]()
        if body:
            demand(kind.startswith("multipart/form-data; boundary="), 400, f"{kind} is no multipart/form-data")
            message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
            parts: Any = message.get_payload()
            fields = {part.get_param("name", header="content-disposition"): part.get_payload() for part in parts}
        unknown = set(fields) - FIELDS[operation]
        demand(not unknown, 400, f"unknown {unknown}")
        demand(
            self.state in MAAS_FROM[operation], 409, f"Can't {operation} a machine that is in the '{self.state}' state"
        )
        self.state = {"release": "Releasing", "deploy": "Deploying"}[operation]
        threading.Timer(0.3, self._end, [operation, fields.get("distro_series", "")]).start()
        return 200, {"system_id": self.system_id, "status_name": self.state}

    def _authenticate(self, header: str) -> None:
        words = dict(re.findall(r'(oauth_\w+)="([^"]*)"', header))
        consumer, token, key = API_KEY.split(":")
        demand(words.get("oauth_signature_method") == "PLAINTEXT", 401, "Unrecognised signature")
        given = (words.get("oauth_consumer_key"), words.get("oauth_token"), words.get("oauth_signature"))
        demand(given == (consumer, token, f"&{key}"), 401, "Authorization Error: Invalid API key.")
        demand(abs(time.time() - int(words["oauth_timestamp"])) < 300, 401, "Expired timestamp")
        demand(words["oauth_nonce"] not in self.nonces, 401, "Nonce already used")
        self.nonces.add(words["oauth_nonce"])

    def _end(self, operation: str, series: str) -> None:
        self.state = {"release": "Ready", "deploy": "Deployed"}[operation]
        if operation == "deploy":
            self.installs(series)


@contextmanager
def serve(api: Ironic | Maas) -> Iterator[str]:
    """Yield the address of the API."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, answer = api.answer(self.command, self.path, self.headers, body)
            except Refused as error:
                status, answer = error.status, {"message": str(error)}
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815 — http.server calls them so

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def order_ironic(url: str) -> dict[str, Any]:
    """Return the `other` of a Provisioning for Ironic."""
    patch = [{"op": "add", "path": "/instance_info/image_source", "value": "https://images.site/{image}.qcow2"}]
    return {
        "url": url,
        "headers": {"X-Auth-Token": "{secret}", "X-OpenStack-Ironic-API-Version": "1.82"},
        "credentials": {"env": "PROVISIONER"},
        "state_path": "/v1/nodes/{node}",
        "state_field": "provision_state",
        "failed": ["deploy failed", "error"],
        "orders": [
            {"method": "PATCH", "path": "/v1/nodes/{node}", "body": patch, "after": ["active"]},
            {"method": "PUT", "path": "/v1/nodes/{node}/states/provision", "body": {"target": "rebuild"}},
        ],
    }


def order_maas(url: str) -> dict[str, Any]:
    """Return the `other` of a Provisioning for MAAS."""
    machine = "/MAAS/api/2.0/machines/{maas_id}"
    words = [
        'oauth_version="1.0"',
        'oauth_signature_method="PLAINTEXT"',
        "{secret}",
        'oauth_nonce="{nonce}"',
        'oauth_timestamp="{timestamp}"',
    ]
    return {
        "url": url,
        "headers": {"Authorization": "OAuth " + ", ".join(words)},
        "credentials": {"env": "PROVISIONER"},
        "state_path": f"{machine}/",
        "state_field": "status_name",
        "failed": ["Failed deployment", "Releasing failed"],
        "orders": [
            {"path": f"{machine}/op-release", "form": {"comment": "by assay"}, "unless": ["Ready"]},
            {"path": f"{machine}/op-deploy", "form": {"distro_series": "{image}"}, "after": ["Ready"]},
        ],
    }


MAAS_SECRET = 'oauth_consumer_key="consumer", oauth_token="token", oauth_signature="&key"'
