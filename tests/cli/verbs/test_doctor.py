"""`assay doctor` names what a machine lacks for a fleet, with what it is for and what to do."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.cli.verbs.doctor import NeedRule, holds, read_need_rules
from assay.declare.secret_lookup import forget_command_answers
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.node import Node
from assay.model.specs.load_parts import LOAD_PARTS
from assay.model.specs.spec_document import load_spec_model
from tests.support.places import SMALLEST

doctor_app = load_verb("doctor")

NODE_FIELDS = {field.name for field in fields(Node)}
SECRET = "CANARY:of-a-bmc"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed fleet on a machine that has every program, in any version, as far as the PATH tells."""
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root)
    commit(root)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    return root


def commit(root: Path) -> None:
    by = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "one"]):
        subprocess.run([*by, *words], check=True)


def declare(root: Path, variables: str) -> None:
    """Give node n1 more variables."""
    pool = root / "inventory/pool.yml"
    pool.write_text(pool.read_text().replace("node_spec: small", f"node_spec: small, {variables}", 1))
    commit(root)


def ask(root: Path) -> tuple[int, dict[str, Mapping[str, Any]]]:
    """Return the exit code, and the needs by name."""
    done = CliRunner().invoke(doctor_app, ["--format", "json", "--fleet", str(root)], catch_exceptions=False)
    return done.exit_code, {one["name"]: one for one in json.loads(done.stdout)["needs"]}


def find_missing(root: Path) -> dict[str, str]:
    """Return what is missing, and hold the exit code to it. What assay can do without is not missing."""
    code, needs = ask(root)
    missing = {name: one["trouble"] for name, one in needs.items() if one["trouble"] and not one["without"]}
    assert code == (1 if missing else 0)
    assert all(needs[name]["fix"] for name in missing)
    return missing


def test_nothing_is_missing_where_all_is_there(root: Path) -> None:
    assert find_missing(root) == {}
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)]).stdout
    assert said.splitlines()[-1].endswith("needed: all there")
    assert not (root / ".assay").exists()


def have_only(monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in programs else None)


def write_spec(root: Path, name: str, text: str) -> None:
    (root / "specs" / name).write_text(text)
    commit(root)


def test_only_programs_that_the_fleet_uses_are_missed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have_only(monkeypatch, "git", "node")
    assert find_missing(root) == {"ssh": "not on the PATH"}
    declare(root, "workloads: slurm")
    assert find_missing(root).keys() == {"ssh", *SLURM}


SLURM = {"sinfo", "squeue", "scontrol", "srun", "sbatch", "scancel"}
PARTS = """
kind: BurnIn
name: own
sources: [us]
phases: [{name: heat, hours: 1, parts: [PARTS]}]
"""
WORKLOAD = """
kind: CollectiveWorkload
name: ring
sources: [us]
pair: {command: [launch, "{a}", "{b}"], deadline_seconds: 9}
"""
SCHEDULE = """
kind: Schedules
name: own
sources: [us]
schedules:
"""


@pytest.mark.parametrize(
    ("variables", "programs"),
    [
        ("transport: kubernetes", {"kubectl", "ssh"}),
        ("transport: slurm", SLURM | {"ssh"}),
        ("reach: [docker, exec]", {"docker", "ssh"}),
        ("fabric_discover: [ssh, switch, ibnetdiscover]", {"ssh"}),
        ("fabric_facts: {errors: [ibq, -a]}", {"ibq", "ssh"}),
    ],
)
def test_a_variable_of_a_node_asks_for_programs(
    root: Path, monkeypatch: pytest.MonkeyPatch, variables: str, programs: set[str]
) -> None:
    """The other node of the fleet is read over SSH."""
    have_only(monkeypatch, "git", "node")
    declare(root, variables)
    assert find_missing(root).keys() == programs


@pytest.mark.parametrize(
    ("commits", "programs"),
    [
        ("{signed: true, allowed_signers: specs/signers}", {"ssh-keygen"}),
        ("{signed: false, allowed_signers: specs/signers}", set()),
    ],
)
def test_signed_commits_ask_for_what_verifies_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, commits: str, programs: set[str]
) -> None:
    have_only(monkeypatch, "git", "node", "ssh")
    (root / "specs/signers").write_text('a@example.org namespaces="git" ssh-ed25519 AAAA\n')
    policy = root / "specs/policy.yaml"
    policy.write_text(f"{policy.read_text()}commits: {commits}\n")
    commit(root)
    assert find_missing(root).keys() == programs


def test_a_search_by_the_clock_needs_its_launcher_and_others_may_do_without(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_only(monkeypatch, "git", "node", "ssh")
    write_spec(root, "ring.yaml", WORKLOAD)
    code, needs = ask(root)
    assert (code, needs["launch"]["trouble"]) == (0, "not on the PATH")
    assert needs["launch"]["without"] == "searches by this workload"
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)]).stdout
    assert "without  launch (searches: ring): not on the PATH" in said
    assert said.splitlines()[-1].endswith("needed: all there")
    search = "does: collectives-search, cron: '1 1 * * *', search: {workload: ring}"
    write_spec(root, "schedule.yaml", f"{SCHEDULE}  search: {{{search}}}\n")
    assert find_missing(root).keys() == {"launch"}


def test_a_search_whose_ranks_find_each_other_by_pmix_asks_the_nodes_for_its_library(root: Path) -> None:
    write_spec(root, "ring.yaml", WORKLOAD.replace("[launch,", "[srun, --mpi=pmix,"))
    assert "libpmix" not in ask(root)[1], "nobody searches by it"
    search = "does: collectives-search, cron: '1 1 * * *', search: {workload: ring}"
    write_spec(root, "schedule.yaml", f"{SCHEDULE}  search: {{{search}}}\n")
    need = ask(root)[1]["libpmix"]
    assert (need["where"], need["used_for"]) == ("the nodes", "scheduled searches through Slurm's PMIx: ring")


def test_a_stamped_seal_asks_for_openssl(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have_only(monkeypatch, "git", "node", "ssh")
    for anchor, programs in (("git-note", set()), ("rfc3161:https://tsa.example.org", {"openssl"})):
        seal = f'does: ledger-seal, every_minutes: 60, anchors: ["{anchor}"]'
        write_spec(root, "schedule.yaml", f"{SCHEDULE}  seal: {{{seal}}}\n")
        assert find_missing(root).keys() == programs


def test_messages_to_people_ask_for_their_extra(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "apprise" else object())
    monkeypatch.setenv("CHAT", "slack://x")
    route = "kind: TicketRoute\nname: chat\nnotify: {channel: ops, credentials: {env: CHAT}}\n"
    assert find_missing(root) == {}
    write_spec(root, "chat.yaml", route)
    assert find_missing(root) == {"extra notify": "not installed: apprise"}


def test_the_pages_of_allure_are_left_out_without_node(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have_only(monkeypatch, "git", "ssh")
    code, needs = ask(root)
    assert (code, needs["node"]["without"]) == (0, "the Allure pages of the report")


def test_each_part_of_a_load_names_what_the_nodes_must_have(root: Path) -> None:
    write_spec(root, "burn-in.yaml", PARTS.replace("PARTS", ", ".join(sorted(set(LOAD_PARTS) - {"site_training"}))))
    code, needs = ask(root)
    told = {need["name"]: need for need in needs.values() if need["where"] == "the nodes"}
    for part in set(LOAD_PARTS) - {"hpl", "site_training"}:  # the site names their commands
        assert sum(holds_part(rule, part) for rule in read_need_rules()) == 1, part
    assert {"all_reduce_perf", "gpu_burn", "fio", "stress-ng", "dcgmi", "nvbandwidth", "assay-load"} <= told.keys()
    assert "ib_write_bw" not in told, "no node has an adapter"
    assert {need["trouble"] for need in told.values()} == {""}, "doctor does not look there"
    assert code == 0


def test_a_site_whose_gpus_are_amds_is_told_of_no_tool_of_nvidia(root: Path) -> None:
    write_spec(root, "burn-in.yaml", PARTS.replace("PARTS", ", ".join(sorted(set(LOAD_PARTS) - {"site_training"}))))
    spec = (root / "specs/node.yaml").read_text().replace('driver: "570"\n', "")
    write_spec(root, "node.yaml", spec.replace("model: H100", "vendor: amd, model: AMD Instinct MI300X"))
    on_nodes = {name for name, need in ask(root)[1].items() if need["where"] == "the nodes"}
    assert on_nodes == {"python3", "amd-smi", "rocm-smi", "fio", "stress-ng", "stressapptest", "nvme", "smartctl"}


def holds_part(rule: NeedRule, part: str) -> bool:
    """Whether a row is for a part of a load."""
    return any(path.startswith("burn_ins.") for path in rule.declared) and holds(part, rule.has)


HERE = ("act/", "adapters/", "cli/", "declare/", "fabric/", "ledger/", "observe/", "tell/", "validate/")
"""Rooms whose programs run on the machine where assay works."""
ON_NODES = ("node/load_tools/", "node/probe/", "node/load/")
OTHERS = {
    "sys.executable": "this Python",
    "python": "this Python, or the node's python3",
    "tools.node": "node, by the row of that name",
    "program": "ssh-keygen, gpg and Slurm's, by their own rows",
    "sh": "every machine has it",
    "systemctl": "a line for cloud-init; on nodes, every Debian has it",
    "sudo": "on nodes, by a row there",
    "umount": "a command for nodes, which every machine has",
    "mdadm": "a command for nodes, where an array is",
    **dict.fromkeys(("notes", "log", "hash-object", "context"), "words of git or assay itself"),
    **dict.fromkeys(("battery", "train"), "words of assay-load"),
    **dict.fromkeys(("tool", "locked", "label", "engine", "TOOL"), "a variable for one with a row"),
    **dict.fromkeys(("df", "timedatectl"), "every Debian has it"),
    **dict.fromkeys(("ntpq", "pmc"), "asked in place of chronyc, where it is"),
}
"""What the code starts without a row of its own, and why."""


def test_each_program_that_the_code_starts_has_a_row() -> None:
    calls = yaml.safe_load((SMALLEST.parents[1] / "architecture/outside_calls.yaml").read_text())
    places = [place for row in calls.values() for place in row["places"]]
    started = [re.fullmatch(r"(.+?)(?::[\w.]+)?: runs (\S+).*", place) for place in places]
    for rooms, where in ((HERE, ""), (ON_NODES, "the nodes")):
        rows = {name for rule in read_need_rules() if rule.where == where for name in rule.programs}
        programs = {found[2] for found in started if found and found[1].startswith(rooms)}
        assert programs - rows - OTHERS.keys() == set(), "write into doctor_needs.yaml who needs it"
        assert len(programs & rows) > 5


def test_a_row_with_a_word_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="programmes"):
        NeedRule.model_validate({"programmes": ["git"], "for": "x"})


def list_models(model: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    """Yield every model of specs that is loaded."""
    for one in model.__subclasses__():
        yield one
        yield from list_models(one)


def test_each_path_of_a_row_leads_into_the_fleet() -> None:
    """What the models do not have is found by nobody, and nobody would notice."""
    for kind in FIELD_OF_KIND:
        load_spec_model(kind)
    first = {path.partition(".")[0] for rule in read_need_rules() for path in (*rule.declared, rule.among) if path}
    assert first <= {field.name for field in fields(Fleet)}
    used = {name for rule in read_need_rules() for path in (*rule.declared, rule.among) for name in path.split(".")}
    known = {name for model in list_models() for name in (*model.model_fields, *NODE_FIELDS)}
    assert {name.lstrip("?!") for name in used if name not in ("*", "0", "")} - known - first == {"ansible", "become"}


def test_an_extra_is_missed_where_the_fleet_uses_it_and_else_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name in ("duckdb", "kubernetes") else installed(name),
    )
    assert find_missing(root) == {"extra duckdb": "not installed: duckdb"}
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)]).stdout
    assert "→ pip install 'assay-fleet[duckdb]'" in said
    assert "not needed by this fleet: kubernetes\n" in said


def test_files_that_are_not_committed_are_told(root: Path) -> None:
    (root / "specs" / "node.yaml").write_text((root / "specs" / "node.yaml").read_text() + "\n")
    ((name, trouble),) = find_missing(root).items()
    assert name.startswith("commit ")
    assert "files differ from it" in trouble
    shutil.rmtree(root / ".git")
    assert find_missing(root) == {"commit": "the fleet repository has no commit"}


@pytest.mark.parametrize(
    ("reference", "name", "trouble"),
    [
        ("{env: BMC_OF_N1}", "the environment variable BMC_OF_N1", "not set"),
        ("{file: /nowhere/bmc}", "/nowhere/bmc", "/nowhere/bmc cannot be read: No such file or directory"),
        ("{file: bmc}", "bmc", "others on this machine may read it"),
        ('{command: ["false"]}', "the command false", "the command false ended with exit status 1"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_and_never_shown(
    root: Path, reference: str, name: str, trouble: str
) -> None:
    forget_command_answers()
    (root / ".gitignore").write_text("bmc\n")
    (root / "bmc").write_text(SECRET)
    (root / "bmc").chmod(0o644)
    declare(root, f"bmc_credentials: {reference}")
    assert find_missing(root) == {name: trouble}
    (root / "bmc").chmod(0o600)
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)], env={"BMC_OF_N1": SECRET}).stdout
    assert ("all there" in said) == (reference in ("{env: BMC_OF_N1}", "{file: bmc}"))
    assert "CANARY" not in said


def test_a_ledger_that_cannot_be_read_and_a_full_disk_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".assay").mkdir()
    (root / ".assay" / "ledger.sqlite").write_text("no ledger")
    (root / ".gitignore").write_text(".assay/\n")
    commit(root)
    assert find_missing(root).keys() == {"ledger"}
    (root / ".assay" / "ledger.sqlite").unlink()
    usage = shutil.disk_usage(root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5 * 2**20))
    assert find_missing(root) == dict.fromkeys([str(root / ".assay"), str(root / "reports")], "only 5 MiB are free")


def test_what_is_no_fleet_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no fleet repository"):
        CliRunner().invoke(doctor_app, ["--fleet", str(tmp_path)], catch_exceptions=False)
