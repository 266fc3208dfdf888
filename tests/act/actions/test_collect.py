"""What a vendor asks for is kept before a restart: whole, bounded, without customers' data; and it holds nothing up."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from assay.act.actions import collect
from assay.act.actions.action import EffectIntent
from assay.act.actions.collect import Member, pack_members
from assay.act.remedies.dossier_build import locate_diagnostics, read_zip
from assay.adapters.scheduler import CustomerJob, NoScheduler
from assay.model.specs.node_settings import BmcConsole
from assay.model.text.safe_text import register_secret
from tests.support.lab_room import Room, wish

NODE = "n0012"
INTENT = EffectIntent("e1", "collect", NODE, "d1", "gpu.xid.79 on gpu4", before={"faults": [{"fault": "f1"}]})


def unpack(members: dict[str, Member], **more: Any) -> tuple[dict[str, bytes], dict[str, Any]]:
    content = read_zip(pack_members(INTENT, {"serial": "S1", "at": "now"}, members, **more))
    return content, json.loads(content[collect.MANIFEST])


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Xid (PCI:0000:9d:00): 31, pid=4242, name=train.py, MMU Fault", "31, pid=4242, name=•••, MMU Fault"),
        ("CPU: 3 PID: 4242 Comm: llm-secret Tainted", "Comm: ••• Tainted"),
        ("oom-kill:task_memcg=/slurm/uid_7,task=train,pid=4", "task_memcg=•••,task=•••,pid=4"),
        ("Killed process 77 (train me) total-vm", "Killed process 77 (•••) total-vm"),
        ("        Name                  : /usr/bin/python3 x", "        Name                  : •••"),
        ("open /home/alice/model.pt: failed", "open /home/•••: failed"),
        ("mail to alice@customer.example.com now", "mail to ••• now"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nend", "•••\nend"),
        ("https://bob:hunter2@host/x", "•••host/x"),
        ("the job bigmodel7 of carol", "the job ••• of •••"),
    ],
)
def test_secrets_and_traces_of_customers_are_taken_out(said: str, kept: str) -> None:
    content, manifest = unpack({"kernel.log": Member(said.encode())}, words={"bigmodel7", "carol", "x"})
    assert kept in content["kernel.log"].decode()
    assert manifest["members"]["kernel.log"]["redacted"] > 0


def test_what_says_nothing_of_customers_stays() -> None:
    text = "NVRM: Xid (PCI:0000:9d:00): 79, GPU has fallen off the bus.\nProduct Name : NVIDIA H100 80GB HBM3\n"
    content, manifest = unpack({"kernel.log": Member(text.encode())})
    assert content["kernel.log"].decode() == text
    assert manifest["members"]["kernel.log"] == {"bytes": len(text), "redacted": 0, "note": ""}


def test_json_stays_json_whatever_is_taken_out_of_it() -> None:
    lines = [{"text": 'Xid: 31, name=train.py"'}, {"text": "Comm: x\\y"}, {"text": "in /home/a/b\\"}, {"t": "a=name=b"}]
    content, _ = unpack({"bmc.json": Member(json.dumps(lines).encode())})
    assert len(json.loads(content["bmc.json"])) == len(lines)


def test_a_known_secret_is_in_no_member_and_not_in_the_manifest() -> None:
    register_secret("root:tulip-of-the-bmc")
    content, _ = unpack({"a": Member(b"tulip-of-the-bmc", "login tulip-of-the-bmc failed")})
    assert not any(b"tulip" in each for each in content.values())


def test_an_archive_that_is_too_large_leaves_out_its_largest_members_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collect, "MAX_ARCHIVE_BYTES", 1 << 20)
    noise = {f"m{n}": Member(hashlib.shake_256(bytes([n])).hexdigest(400_000 * (1 + n)).encode()) for n in range(3)}
    content, manifest = unpack(noise)
    assert "m2" not in content
    assert "m0" in content
    assert manifest["members"]["m2"] == {"bytes": 0, "redacted": 0, "note": "left out: the archive may have 1 MiB"}


class OneJob(NoScheduler):
    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        del node
        return (CustomerJob("1", "bigmodel7", "alice", ""),)


def test_the_archive_of_a_virtual_node_holds_every_report_and_proves_itself(room: Room) -> None:
    with room.world.change(NODE) as state:
        at = room.world.clock().now().isoformat()
        state["kernel_log"].append({"at": at, "text": "NVRM: Xid (PCI:0000:1b:00): 31, name=bigmodel7, alice"})
    context = replace(room.context(), workloads=lambda _: OneJob({}))
    intent = replace(wish("collect", NODE), effect="c1", before={"faults": [{"fault": "f1"}], "wanted": True})
    assert collect.verify(context, intent).done is False
    collect.run(context, intent)
    proof = collect.verify(context, intent)
    path = locate_diagnostics(context.reports, NODE, "c1")
    content = read_zip(path.read_bytes())
    manifest = json.loads(content["manifest.json"])
    assert proof.done, proof.reason
    assert proof.facts["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert proof.facts["lacking"] == ["amd-smi.json"]
    assert manifest["members"]["amd-smi.json"]["note"] == "amd-smi is not installed"
    assert b"Xid (PCI:0000:1b:00): 31" in content["kernel.log"]
    assert b"Xid (PCI:0000:1b:00): 31" in content["nvidia-bug-report.log"]
    assert not any(b"bigmodel7" in each or b"alice" in each for each in content.values())
    assert {"Overall Health"} <= json.loads(content["dcgmi-health.json"])["body"].keys()
    assert json.loads(content["fabric-counters.json"])["mlx5_0"]["counters"]
    assert [name for name in content if name.startswith("bmc-log-") and "SEL" in name]
    path.write_bytes(path.read_bytes()[:-30])
    assert collect.verify(context, intent).done is False


def test_the_last_part_of_the_console_is_kept_without_traces_of_customers(room: Room) -> None:
    context = room.context()
    node = context.fleet.nodes[NODE]
    node = replace(node, settings=node.settings.model_copy(update={"bmc_console": BmcConsole()}))
    context = replace(context, fleet=replace(context.fleet, nodes={**context.fleet.nodes, NODE: node}))
    folder = context.home / "consoles"
    folder.mkdir(parents=True)
    intent = replace(wish("collect", NODE), effect="c4", before={"wanted": True})

    def collected() -> tuple[dict[str, bytes], dict[str, Any]]:
        collect.run(context, intent)
        content = read_zip(locate_diagnostics(context.reports, NODE, "c4").read_bytes())
        return content, json.loads(content["manifest.json"])["members"]["console.log"]

    assert collected()[1]["note"] == f"nothing is recorded of the console of {NODE}"
    line = "[Tue Dec  1 04:31:45 2026]BUG: CPU: 3 PID: 42 Comm: llm-secret Tainted\r\n"
    (folder / f"{NODE}.log").write_text(line * 10_000)
    content, manifest = collected()
    assert 200_000 < manifest["bytes"] <= 2**18
    assert manifest["redacted"] == content["console.log"].count(b"\n") + 1
    assert content["console.log"].startswith(b"[2026-12-01T04:31:45+00:00] BUG: CPU: 3 PID: 42 Comm: \xe2\x80\xa2")


def test_of_a_node_and_a_bmc_that_are_silent_the_archive_says_why_each_report_is_missing(room: Room) -> None:
    context = room.context()
    silent = replace(context.fleet.nodes[NODE], bmc_address="")
    silent = replace(silent, settings=silent.settings.model_copy(update={"reach": ["false"]}))
    context = replace(context, fleet=replace(context.fleet, nodes={**context.fleet.nodes, NODE: silent}))
    intent = replace(wish("collect", NODE), effect="c2", before={"wanted": True})
    collect.run(context, intent)
    manifest = json.loads(read_zip(locate_diagnostics(context.reports, NODE, "c2").read_bytes())["manifest.json"])
    assert collect.verify(context, intent).done
    assert all(not member["bytes"] and member["note"] for member in manifest["members"].values()), manifest
    assert {"nvidia-bug-report.log", "kernel.log", "bmc-logs.json"} <= manifest["members"].keys()


def test_without_a_failure_there_is_nothing_to_keep(room: Room) -> None:
    intent = replace(wish("collect", NODE), effect="c3", before={"wanted": False})
    context = room.context()
    collect.run(context, intent)
    assert "nothing to keep" in collect.verify(context, intent).reason
    assert not locate_diagnostics(context.reports, NODE, "c3").exists()
