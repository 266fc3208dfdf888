"""Pull requests such as a fleet lives through, on 200 nodes of three kinds: each is reviewed by the shipped workflow.

The checks run as written, the plan asks the fleet's server, and its comment is written. What is right is green. What is
wrong is red, with a sentence that helps. The tests are one story, in this order: each begins with what the one before
has merged. The first merge, the upgrade, the firmware, the image and the revert go through the whole of `merge.yml`, as
does the merge that is red. The others are adopted without its round, which takes a minute and orders nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from assay.act.loop.context import ControllerContext
from assay.act.rollouts.commit_adoption import take_up_fleet
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.observe.evidence_store import EvidenceStore
from tests.declare.starter.forge import MAIN, NAME, PERSON, Forge, PullRequest, git, replace_text
from tests.declare.starter.github_api import serve_github
from tests.declare.starter.github_runner import GitHub, JobRun
from tests.declare.starter.machines_that_answer import run_hall
from tests.declare.starter.test_a_pull_request import openbmc_archive
from tests.declare.starter.three_kinds import (
    GB200,
    H200,
    LIMIT_OF_OURS,
    OUR_CHECK,
    OUR_CHECK_CASES,
    OUR_CHECK_DECLARED,
    make_host,
    make_three_kinds,
)
from tests.support.forked_assay import run_assay
from tests.support.kubernetes.kube_make import node as make_node
from tests.support.kubernetes.kube_rights import MANIFEST, rights_of
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.reserved_ports import reserve_ports
from tests.support.slurm_cluster import cluster, needs_slurm

pytestmark = [pytest.mark.slow(minutes=13), needs_slurm]
Change = Callable[[Path], None]
TOKEN = "token-of-the-runner"
VISITOR = (
    f"access: {{visitors: {{ci: {{role: viewer, token: {{sha256: {hashlib.sha256(TOKEN.encode()).hexdigest()}}}}}}}}}\n"
)
POWER = "playbooks/collections/ansible_collections/assay/fleet/plugins/action/power.py"
MARKED = re.compile(r"(?ms)^<{7} .*?^={7}\n(.*?)^>{7} .*?\n")
CONFLICTS = 1
"""What `assay upgrade` ends with where a person must choose."""
TRAYS_BIOS = openbmc_archive("02.04.13")
TRAYS_BIOS_SHA256 = hashlib.sha256(TRAYS_BIOS).hexdigest()
ANOTHER_IMAGE = (
    f"firmware/trays-bios.bin has the sha256 {TRAYS_BIOS_SHA256}\n→ add the qualified image, or qualify this one"
)
H200_SPEC, POLICY, COMPUTE = "specs/nodes/hgx-h200.yaml", "specs/lifecycle/default.yaml", "specs/fabrics/compute.yaml"


class Story:
    """The fleet on GitHub, and its own machine, where `assay serve` answers the plans of pull requests."""

    def __init__(self, github: GitHub) -> None:
        self.github, self.forge = github, github.forge
        self.home = github.folder / "assay-fleet"

    def open(self, title: str, *changes: Change, base: str = f"origin/{MAIN}") -> PullRequest:
        def change(root: Path) -> None:
            for each in changes:
                each(root)

        return self.forge.open(title, change, base)

    def review(self, pull: PullRequest) -> str:
        """Let the workflow check and plan a change that is right; return the comment."""
        jobs = self.github.run_pull_request(pull, "check", "plan")
        assert [name for name, job in jobs.items() if not job.is_green] == [], "\n".join(map(str, jobs.values()))
        (comment,) = self.github.api.bodies(pull.number)
        assert "the facts of the fleet are missing" not in comment
        assert "UTC UTC" not in comment
        return comment

    def refuse(self, pull: PullRequest) -> str:
        """Let the workflow check a change that is wrong; return what the step that is red shows people."""
        job = self.github.run_pull_request(pull, "check")["check"]
        assert not job.is_green, str(job)
        return read_annotations(job.failed.stdout)

    def apply(self, pull: PullRequest) -> JobRun:
        """Merge a change, and let the whole of `merge.yml` apply it, with its round over all nodes."""
        self.github.api.merges[self.forge.merge(pull)] = pull.number
        merged = self.github.run_fleet("merge.yml")
        assert merged.is_green, str(merged)
        return merged

    def merge(self, pull: PullRequest) -> None:
        """Merge a change, and let the fleet's machine adopt it: what `merge.yml` does before it looks at nodes."""
        self.github.api.merges[self.forge.merge(pull)] = pull.number
        git(self.home, "fetch", "--quiet", "origin", MAIN)
        git(self.home, "checkout", "--quiet", "--force", "-B", MAIN, "FETCH_HEAD")
        self._note_plan()
        data = self.home / ".assay"
        ledger = Ledger.open(data / "ledger.sqlite")
        store = EvidenceStore(data / "evidence")
        fleet = load_fleet(self.home)
        take_up_fleet(ControllerContext(fleet, ledger, store, SystemClock(), data, self.home / "reports"))
        ledger.close()

    def _note_plan(self) -> None:
        """Note the reviewed plan of the merge, as the step of `merge.yml` does."""
        self.github.api.tokens["merge"] = {"pull-requests": "read"}
        github = {"GITHUB_API_URL": self.github.api.url, "GITHUB_REPOSITORY": NAME, "GITHUB_TOKEN": "merge"}
        words = [sys.executable, ".github/actions/comment/reviewed_plan.py"]
        environment = {**os.environ, **github, "GITHUB_SHA": git(self.home, "rev-parse", "HEAD")}
        subprocess.run(words, cwd=self.home, env=environment, check=True, capture_output=True)

    def rollouts(self) -> list[dict[str, object]]:
        asked = run_assay("rollout", "--format", "json", cwd=self.home)
        return list(json.loads(asked.stdout)["rollouts"])


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("acme")
    for name in ("machines", "hall"):
        (folder / name).mkdir()
    (port,) = reserve_ports(1)
    with run_schedulers(folder) as (slurm_conf, kubeconfig), ExitStack() as running:
        forge = Forge(folder, lambda root: make_three_kinds(root, slurm_conf, kubeconfig))
        api = running.enter_context(serve_github())
        hall = running.enter_context(run_hall(folder / "hall", forge.clone))
        (forge.clone / POLICY).open("a").write(VISITOR)
        hall.write_addresses(forge.clone)
        forge.commit("Where our machines are, and who may read")
        git(forge.clone, "push", "--quiet", "origin", MAIN)
        reader = {"ASSAY_SERVER": f"http://127.0.0.1:{port}", "ASSAY_READER": TOKEN}
        github = GitHub(forge, folder / "machines", api, reader, {"fleet": {"ASSAY_BMC": "assay:hall"}})
        merged = github.run_fleet("merge.yml")
        assert merged.is_green, str(merged)
        assert "200 production" in merged.step("Where every node is now").stdout
        running.enter_context(serve(github.folder / "assay-fleet", port))
        yield Story(github)


@contextmanager
def run_schedulers(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Run a real Slurm of the H200, and an API server that has the trays; give slurm.conf and kubeconfig."""
    for name in ("slurm", "kubernetes"):
        (folder / name).mkdir()
    kube = KubeFake(folder / "kubernetes", {"assay-token": rights_of(MANIFEST)})
    for name in GB200:
        kube.put("nodes", "", make_node(name))
    kube.start()
    try:
        with cluster(folder / "slurm", *H200):
            yield folder / "slurm/slurm.conf", kube.kubeconfig()
    finally:
        kube.stop()


@contextmanager
def serve(home: Path, port: int) -> Iterator[None]:
    """Let `assay serve` answer while the block lasts."""
    words = [sys.executable, "-m", "assay", "serve", "--port", str(port)]
    environment = {**os.environ, "ASSAY_CONTEXT": "fleet"}
    served = subprocess.Popen(words, cwd=home, env=environment, stderr=subprocess.PIPE, text=True)
    assert served.stderr
    try:
        assert any("listens on" in line for line in served.stderr), "it ended before it listened"
        yield
    finally:
        served.terminate()
        served.communicate()


def test_an_upgrade_of_assay(story: Story) -> None:
    """The site has changed a line of a plug-in that this version changes: the upgrade leaves both, marked."""
    imported = "from assay.model.errors import AssayError\n"
    pull = story.open("Upgrade assay", replace_text(POWER, imported, f"from time import sleep\n{imported}"), upgrade)
    refused = story.refuse(pull)
    assert f"file={POWER},line=9," in refused
    assert "a conflict of a merge or an upgrade begins here\n→ choose between the marked lines" in refused
    story.forge.push(pull, "Theirs", take_theirs)
    comment = story.review(pull)
    assert "playbook" in comment
    story.apply(pull)


def test_a_limit_is_changed(story: Story) -> None:
    was, will = "gpu_temperature: {value: 85, unit: °C,", "gpu_temperature: {value: 84, unit: C,"
    wrong = story.open("A lower limit", replace_text(H200_SPEC, was, will))
    assert "'C' is no unit that assay knows\n→ write °C" in story.refuse(wrong)
    story.forge.push(wrong, "In degrees", replace_text(H200_SPEC, will, will.replace("C", "°C")))
    comment = story.review(wrong)
    assert "gpu_temperature of hgx-h200: 85 °C → 84 °C" in comment
    assert "120 nodes (h001..h120): test 1, production 1" in comment
    story.merge(wrong)


def test_the_policy_is_changed(story: Story) -> None:
    wrong = story.open(
        "Act on trays, fewer at once",
        replace_text(POLICY, "  fleet: watch\n", "  fleet: watch\n  pools: {gb200: act}\n"),
        replace_text(POLICY, "  pool_percent: 25\n", "  pool_percent: 10\n"),
    )
    refused = story.refuse(wrong)
    assert "breaker.percent is 20 %, but automation stops at limits.pool_percent, 10 %" in refused
    story.forge.push(
        wrong, "As many as the breaker needs", replace_text(POLICY, "  pool_percent: 10\n", "  pool_percent: 20\n")
    )
    comment = story.review(wrong)
    assert "limits.pool_percent: 25 → 20" in comment
    assert "trust.pools.gb200: none → act" in comment
    story.merge(wrong)


def test_a_node_is_added(story: Story) -> None:
    wrong = story.open("One more H200", edit_inventory("h200", lambda hosts: hosts.update(h121=make_host("h121", 8))))
    assert "the design compute does not list h121" in story.refuse(wrong)
    story.forge.push(wrong, "Its cables", replace_text(COMPUTE, "h001..h120", "h001..h121"))
    comment = story.review(wrong)
    assert "added: h121, pool h200, starts in onboard, and enters service through proof" in comment
    assert "lay a cable from h121 mlx5_7 port R7" in comment
    story.merge(wrong)


def test_a_node_is_replaced(story: Story) -> None:
    def put_another(hosts: dict, guids: list[str]) -> None:
        hosts["h007"] |= {"serial_number": "H52990007", "hca_guids": guids}

    copied = make_host("h008", 8)["hca_guids"]
    wrong = story.open("Another chassis", edit_inventory("h200", lambda hosts: put_another(hosts, copied)))
    assert f"HCA GUID {copied[0]} is given by h007 too" in story.refuse(wrong)
    own = make_host("h907", 8)["hca_guids"]
    story.forge.push(wrong, "Its own", edit_inventory("h200", lambda hosts: put_another(hosts, own)))
    comment = story.review(wrong)
    assert "serial_number: h007: H52000007 → H52990007" in comment
    assert "compute: h007 (hr02 U22): replace" in comment
    story.merge(wrong)


def test_a_cable_is_moved(story: Story) -> None:
    def move(leaf: str, port: int) -> Change:
        to = f"{{device: {leaf}, port: {port}}}"
        line = f"overrides: [{{device: leaf-su01-r0, port: 1, to: {to}, why: cage 1/1 is broken}}]\n"
        return lambda root: (root / COMPUTE).write_text(DROPPED.sub("", (root / COMPUTE).read_text()) + line)

    wrong = story.open("Another cage", move("leaf-su01-r0", 2))
    assert "port 2 of leaf-su01-r0 is cabled by the rules of compute already" in story.refuse(wrong)
    story.forge.push(wrong, "A free one", move("leaf-su04-r0", 32))
    comment = story.review(wrong)
    assert "move the plug from leaf-su01-r0 port 1/1 (x01-1 U20) to leaf-su04-r0 port 16/2" in comment
    story.merge(wrong)


def test_a_check_of_our_own_is_added(story: Story) -> None:
    check = "suites/production/test_oslo.py::test_power_draw"
    wrong = story.open("Our check", write("suites/production/test_oslo.py", OUR_CHECK))
    refused = story.refuse(wrong)
    assert f"no CheckCatalog declares {check}\n→ add it to specs/checks" in refused
    assert "no limit oslo_power_draw" in refused
    limits = [add_limit(f"specs/nodes/{name}.yaml") for name in ("hgx-h100", "gb200-nvl72")]
    story.forge.push(wrong, "Declared", write("specs/checks/oslo.yaml", OUR_CHECK_DECLARED), *limits, write_owners)
    assert "no case makes it fail: write one into suites/recordings" in story.refuse(wrong)
    story.forge.push(wrong, "Proved", write("suites/recordings/oslo.yaml", OUR_CHECK_CASES))
    comment = story.review(wrong)
    again = "175 nodes (g001..g054, h001..h121): production 1 (because of a new check"
    assert f"{again}, limit oslo_power_draw none → 1300 W)" in comment
    story.merge(wrong)


def test_two_changes_that_fit_alone_and_not_together(story: Story) -> None:
    """The second is red as soon as the first is merged. Merged all the same, it is not applied until it is mended."""

    def move(name: str, u: int) -> Change:
        return edit_inventory("mi300x", lambda hosts: hosts[name].update(rack="mr09", u=u))

    first, second = story.open("m003 moves", move("m003", 2)), story.open("m005 moves", move("m005", 2))
    assert "place: m003: oslo mr01 U22 → oslo mr09 U2" in story.review(first)
    story.review(second)
    story.merge(first)
    story.forge.try_merge(second)
    refused = "m005: place oslo mr09 U2 is given by m003 too"
    assert refused in story.refuse(second)
    story.github.api.merges[story.forge.merge(second)] = second.number
    stopped = story.github.run_fleet("merge.yml")
    assert stopped.failed.name == "assay check --format github"
    assert refused in read_annotations(stopped.failed.stdout)
    assert stopped.steps[-1].name == "Where every node is now", "nothing else was run"
    repair = story.open("m005 stands higher", move("m005", 12))
    assert "place: m005: oslo mr09 U2 → oslo mr09 U12" in story.review(repair)
    story.merge(repair)


def test_a_firmware_bump_is_rehearsed_and_rolled_out(story: Story) -> None:
    def bring(root: Path, declared: str) -> None:
        (root / "firmware").mkdir(exist_ok=True)
        (root / "firmware/trays-bios.bin").write_bytes(TRAYS_BIOS)
        bundle = root / "specs/firmware/gb200-nvl72-1.3.yaml"
        text = re.sub(r"\n    artifact: .*", "", bundle.read_text()).replace('"02.04.12"', '"02.04.13"')
        artifact = f'    artifact: {{url: firmware/trays-bios.bin, sha256: "{declared}"}}'
        bundle.write_text(text.replace('version: "02.04.13"\n', f'version: "02.04.13"\n{artifact}\n'))

    pull = story.open("BIOS 02.04.13 for trays", lambda root: bring(root, "ab" * 32))
    assert ANOTHER_IMAGE in story.refuse(pull)
    story.forge.push(pull, "Its digest", lambda root: bring(root, TRAYS_BIOS_SHA256))
    comment = story.review(pull)
    assert "54 nodes (g001..g054): bios 02.04.12 → 02.04.13, resets ac" in comment
    assert "| 0, canary | 1 | g001 |" in comment
    rehearsal = story.github.run_pull_request(pull, "rehearse")["rehearse"]
    assert rehearsal.is_green, str(rehearsal)
    assert rehearsal.step("The pools").stdout == "gb200\n"
    lab = rehearsal.step("The lab")
    assert "g001: bios: pushes" in lab.stderr
    assert re.search(r"^\d+ outcomes on 1 node: ", lab.stdout, re.MULTILINE)
    merged = story.apply(pull)
    reviewed = re.search(r"Assay-Plan: sha256:\w+ at \d+", comment)
    assert reviewed
    assert reviewed[0] in merged.step("The plan that was reviewed").stdout
    (rollout,) = story.rollouts()
    assert (rollout["status"], rollout["nodes"]) == ("running", 54), "it is the plan that was reviewed"


def test_an_image_is_changed_during_the_rollout(story: Story) -> None:
    image, boot = "specs/images/oslo.yaml", "specs/provisioning/oslo.yaml"
    wrong = story.open("Image 2026.11", lambda root: replace_all(root, image, "2026.10", "2026.11"))
    refused = story.refuse(wrong)
    assert "there is no Image oslo-2026.10\n→ did you mean oslo-2026.11?" in refused
    story.forge.push(wrong, "Boot it", replace_text(boot, "oslo-2026.10", "oslo-2026.11"))
    comment = story.review(wrong)
    assert "26 nodes (m001..m026), mi300x: image oslo-2026.10:2026.10" in comment
    (running,) = story.rollouts()
    assert f"rollout {str(running['id'])[:8]} of commit {str(running['commit'])[:12]} is running" in comment
    assert "the merge replaces it, and its nodes are in the waves of this plan" in comment
    assert "its wave 1 of" in comment
    story.apply(wrong)
    first, second = sorted(story.rollouts(), key=lambda rollout: str(rollout["started_at"]))
    assert (first["status"], second["status"], second["nodes"]) == ("superseded", "running", 80)


def test_the_firmware_is_reverted(story: Story) -> None:
    pull = story.open("Back to BIOS 02.04.12", take_back("Its digest"))
    assert ANOTHER_IMAGE in story.refuse(pull), "half of a change is taken back"
    story.forge.push(pull, "The whole change", take_back("BIOS 02.04.13 for trays"))
    comment = story.review(pull)
    assert "54 nodes (g001..g054): bios 02.04.13 → 02.04.12" in comment
    assert "keep what they have, as they have not left for the rollout: 53 nodes (g002..g054)" in comment
    assert "on their way already, they take it as they come: g001" in comment
    story.apply(pull)
    *_, newest = sorted(story.rollouts(), key=lambda rollout: str(rollout["started_at"]))
    assert (newest["status"], newest["nodes"]) == ("running", 27)
    explained = run_assay("explain", "g002", cwd=story.home)
    assert "g002" in explained.stdout
    assert "left alone, over: " not in explained.stdout, "it has what git wants, and is in no rollout"


def upgrade(root: Path) -> None:
    """Commit what the site has changed, and bring its files to this version of assay, conflicts and all."""
    git(root, "commit", "--quiet", "--all", "--message", "Wait a little", **PERSON)
    assert run_assay("upgrade", "--apply", cwd=root).returncode == CONFLICTS


def take_theirs(root: Path) -> None:
    (root / POWER).write_text(MARKED.sub(r"\1", (root / POWER).read_text()))


def take_back(title: str) -> Change:
    """Return a change that takes back a commit of the main branch."""

    def revert(root: Path) -> None:
        commit = git(root, "log", "--format=%H", f"--grep=^{title}$", "origin/main")
        git(root, "revert", "--no-commit", commit, **PERSON)

    return revert


def read_annotations(printed: str) -> str:
    """Return lines for GitHub as it shows them."""
    return printed.replace("%0A", "\n").replace("%25", "%")


def edit_inventory(pool: str, edit: Callable[[dict], object]) -> Change:
    """Return a change of the hosts of a pool."""

    def change(root: Path) -> None:
        path = root / f"inventory/{pool}.yml"
        schema, _, text = path.read_text().partition("\n")
        pools = yaml.load(text, Loader=yaml.CSafeLoader)
        edit(pools[pool]["hosts"])
        dumped = yaml.dump(pools, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=None)
        path.write_text(f"{schema}\n{dumped}")

    return change


def write(path: str, text: str) -> Change:
    return lambda root: (root / path).write_text(text)


def add_limit(path: str) -> Change:
    return replace_text(path, "\nlimits:\n", f"\nlimits:\n{LIMIT_OF_OURS}")


def write_owners(root: Path) -> None:
    assert run_assay("specs", "codeowners", cwd=root).returncode == 0


def replace_all(root: Path, path: str, old: str, new: str) -> None:
    (root / path).write_text((root / path).read_text().replace(old, new))


DROPPED = re.compile(r"(?m)^overrides: .*\n")
