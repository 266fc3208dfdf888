"""The pods of deploy/kustomize/assay.yaml, started container by container by a real Podman, with every output on.

No kubelet runs in the tests: `list_words` gives Podman what a kubelet would give its runtime, and refuses what it does
not know. That a real API server takes the objects, `test_kube_manifests.py` proves.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.deployed_fleet import (
    AGENT_TOKEN,
    SEALS,
    STATE,
    TICKETS,
    WITH_AGENT,
    find_lacks,
    list_mail_server_words,
    make_fleet,
    write_certificates,
    write_environment,
)
from tests.deploy.manifests import WHOLE, read_objects
from tests.deploy.real_podman import IMAGES, UID, RealPodman, needs_podman

pytestmark = [pytest.mark.slow(minutes=2), needs_podman]
OBJECTS = read_objects(WHOLE.read_text())
CONTROLLER = OBJECTS["StatefulSet", "assay", "assay"]["spec"]["template"]["spec"]
AGENT = OBJECTS["DaemonSet", "assay", "assay-agent"]["spec"]["template"]["spec"]
OUTSIDE_OF_A_RUNTIME = {
    *("name", "image", "ports", "startupProbe", "livenessProbe", "readinessProbe"),
    *("resources", "env", "envFrom", "command", "args", "securityContext", "volumeMounts"),
}
ASSAY_FOLDER, REPOSITORY = "/fleet/.assay", "/etc/assay/repository/fleet.bundle"


class Pods:
    """The pods on one engine. `volumes`: the folders of volumes, by their names in the manifest."""

    def __init__(self, engine: RealPodman) -> None:
        self.engine = engine
        self.volumes = {
            name: engine.folder / name
            for name in ("data", "tmp", "tls", "repository", "environment", "secrets", "state")
        }
        for folder in self.volumes.values():
            folder.mkdir()
        shutil.chown(self.volumes["data"], "root", UID)  # as fsGroup says: the group's, also for what is made there
        self.volumes["data"].chmod(0o2775)
        self.volumes["tmp"].chmod(0o1777)

    def start(self, pod: Mapping[str, Any], name: str, **variables: str) -> list[str]:
        """Return the words that start a container of a pod. `variables` stand in for what a site sets."""
        container = next(one for one in (*pod.get("initContainers", ()), *pod["containers"]) if one["name"] == name)
        return [*self.list_words(pod, container, variables), *map(str, container.get("args", ()))]

    def list_words(
        self, pod: Mapping[str, Any], container: Mapping[str, Any], variables: Mapping[str, str]
    ) -> list[str]:
        assert container.keys() <= OUTSIDE_OF_A_RUNTIME, container.keys()
        context = {**pod.get("securityContext", {}), **container["securityContext"]}
        words = ["podman", "run", f"--name={container['name']}", "--network=host", "--read-only-tmpfs=false"]
        for key, value in context.items():
            words += _translate(key, value)
        if "runAsGroup" in context:
            words.append(f"--user={context['runAsUser']}:{context['runAsGroup']}")
        words.append(f"--memory={container['resources']['limits']['memory'].replace('i', '').lower()}")
        for one in container.get("env", ()):
            default = one.get("value") or {"spec.nodeName": WITH_AGENT}[one["valueFrom"]["fieldRef"]["fieldPath"]]
            words.append(f"--env={one['name']}={variables.get(one['name'], default)}")
        for one in container.get("envFrom", ()):
            assert one["secretRef"]["name"] == "assay-environment"
            words.append(f"--env-file={self.volumes['environment'] / 'env'}")
        declared = {one["name"]: one for one in pod["volumes"]}
        for mount in container["volumeMounts"]:
            how = ":ro" if mount.get("readOnly") else ""
            words.append(f"--volume={self._find_folder(mount, declared)}:{mount['mountPath']}{how}")
        if command := container.get("command"):
            words.append(f"--entrypoint={json.dumps(command)}")
        (target,) = re.findall(r"/assay-(\w+):", container["image"])
        return [*words, IMAGES[target]]

    def _find_folder(self, mount: Mapping[str, Any], declared: Mapping[str, Any]) -> Path:
        if mount["name"] == "kmsg":
            return Path(declared["kmsg"]["hostPath"]["path"])
        folder = self.volumes[mount["name"]] / mount.get("subPath", "")
        if not folder.exists():  # a kubelet makes it as its volume is
            folder.mkdir()
            shutil.chown(folder, "root", UID)
            folder.chmod(0o2775)
        return folder


def _translate(key: str, value: Any) -> list[str]:
    """Return Podman's words for one field of a securityContext."""
    match key, value:
        case ("runAsNonRoot", True) | ("runAsUser" | "runAsGroup" | "fsGroup", _) | ("fsGroupChangePolicy", _):
            return ["--user=0:0"] if (key, value) == ("runAsUser", 0) else []
        case "seccompProfile", {"type": "RuntimeDefault"}:
            return []
        case "allowPrivilegeEscalation", False:
            return ["--security-opt=no-new-privileges"]
        case "readOnlyRootFilesystem", True:
            return ["--read-only"]
        case "capabilities", {"drop": ["ALL"]}:
            return ["--cap-drop=all"]
        case "privileged", True:
            return ["--privileged"]
    raise LookupError(f"nobody said how Podman does {key}: {value}")


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    """The controller's pod, which has cloned a fleet, in a network with a mail server."""
    engine = RealPodman(tmp_path_factory.mktemp("pods"))
    archive = engine.folder / "assay-agent.pyz"
    subprocess.run([sys.executable, "-m", "assay.node.agent.pack", str(archive)], check=True)
    pods = Pods(engine)
    make_fleet(engine.folder / "fleet", pods.volumes["repository"] / "fleet.bundle")
    write_certificates(engine.folder, "localhost", "127.0.0.1")
    for name, source in (("tls.crt", "server.pem"), ("tls.key", "server.key")):
        shutil.copy(engine.folder / source, pods.volumes["tls"] / name)
        shutil.chown(pods.volumes["tls"] / name, "root", UID)
        (pods.volumes["tls"] / name).chmod(0o440)
    write_environment(pods.volumes["environment"] / "env", "localhost", f"{STATE}/ca.pem")
    try:
        engine.start(**{"assay-agent.pyz": archive.read_bytes()})
        mail = engine.enter(sys.executable, *list_mail_server_words(str(engine.folder), str(engine.folder / "mail")))
        with subprocess.Popen(mail) as server:
            engine.do(*pods.start(CONTROLLER, "clone", REPOSITORY=REPOSITORY))
            controller = pods.start(CONTROLLER, "controller")
            shutil.copy(engine.folder / "ca.pem", pods.volumes["data"] / "outputs")
            for words in (
                controller,
                pods.start(CONTROLLER, "serve"),
                pods.start(CONTROLLER, "follow", REPOSITORY=REPOSITORY),
            ):
                engine.do("podman", "run", "--detach", *words[2:])
            yield pods
            server.kill()
    finally:
        engine.stop()
        shutil.rmtree(engine.folder)


def test_seals_tickets_and_mail_leave_the_closed_pod(pods: Pods) -> None:
    data = pods.volumes["data"]
    seals, tickets = (data / "outputs" / Path(name).relative_to(STATE) for name in (SEALS, TICKETS))

    def is_all_there() -> bool:
        notes = pods.engine.do("git", "-c", "safe.directory=*", "for-each-ref", "refs/notes", cwd=data / "fleet")
        return not find_lacks(seals, tickets, pods.engine.folder / "mail", notes)

    pods.engine.wait_for("output of each kind", is_all_there)


@pytest.mark.parametrize("name", ["controller", "serve"])
def test_the_probes_of_a_container_are_answered(pods: Pods, name: str) -> None:
    (container,) = (one for one in CONTROLLER["containers"] if one["name"] == name)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        url = f"{get.get('scheme', 'HTTP').lower()}://127.0.0.1:{ports[get['port']]}{get['path']}"
        ask = f"import ssl, urllib.request as r; r.urlopen({url!r}, context=ssl._create_unverified_context())"
        pods.engine.wait_for(url, lambda ask=ask: not pods.engine.run(sys.executable, "-c", ask).returncode)


def test_the_clone_follows_its_repository(pods: Pods) -> None:
    site = pods.engine.folder / "fleet"
    git = ["git", "-C", str(site), "-c", "user.name=a", "-c", "user.email=a@acme.example"]
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=Next"], check=True)
    bundle = pods.volumes["repository"] / "fleet.bundle"
    subprocess.run([*git, "bundle", "create", "--quiet", str(bundle), "HEAD", "main"], check=True)
    newest = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    read = ("git", "-c", "safe.directory=*", "rev-parse", "HEAD")
    fleet = pods.volumes["data"] / "fleet"
    pods.engine.wait_for("the newest commit", lambda: pods.engine.do(*read, cwd=fleet) == newest)


def test_the_agents_pod_delivers_to_the_server(pods: Pods) -> None:
    (pods.volumes["secrets"] / "token").write_text(AGENT_TOKEN)
    shutil.copy(pods.engine.folder / "ca.pem", pods.volumes["secrets"])
    words = pods.start(AGENT, "agent", ASSAY_SERVER="https://localhost:8443")
    words = [
        word.replace("$(ASSAY_SERVER)", "https://localhost:8443").replace("$(NODE_NAME)", WITH_AGENT) for word in words
    ]
    pods.engine.do("podman", "run", "--detach", *words[2:])
    explain = ("podman", "exec", "controller", "assay", "explain", WITH_AGENT, "--full")
    pods.engine.wait_for("contact", lambda: "its agent was last in contact" in pods.engine.do(*explain))
