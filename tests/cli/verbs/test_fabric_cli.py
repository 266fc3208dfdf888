"""`assay fabric` as a person and a pipeline use it, on the example fleet."""

import gzip
import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from assay.cli.app import main
from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.observe.evidence_store import EvidenceStore
from tests.support.judged_answers import judge_answer
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("fleet")
    for folder in ("inventory", "specs"):
        shutil.copytree(ROOT / folder, root / folder)
    return root


@pytest.fixture(scope="module")
def dump(repository) -> str:
    fleet = load_fleet(repository)
    compiled = compile_topology(fleet.designs["compute"], fleet)
    devices = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in compiled.devices.items()}
    return format_net_file(
        devices, [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in compiled.cables]
    )


@pytest.fixture
def assay(monkeypatch, capsys, repository):
    """Run a verb; return its exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["assay", "fabric", *words, "--fleet", str(repository)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        judge_answer(["fabric", *words], said.out)
        return (end.value.code or 0, *said)

    return run


def swapped(dump: str) -> str:
    """Exchange the cables of n0005 and n0006 on rail 3, at the leaf."""
    fleet = load_fleet(ROOT)
    one, other = (fleet.nodes[node].hca_guids[3][2:] for node in ("n0005", "n0006"))
    leaf = "b83fd203001000c0"
    for old, new in [
        (f'[5]\t"H-{one}"', f'[5]\t"H-{other}"'),
        (f'[6]\t"H-{other}"', f'[6]\t"H-{one}"'),
        (f'({int(one, 16) + 1:x}) \t"S-{leaf}"[5]', f'({int(one, 16) + 1:x}) \t"S-{leaf}"[6]'),
        (f'({int(other, 16) + 1:x}) \t"S-{leaf}"[6]', f'({int(other, 16) + 1:x}) \t"S-{leaf}"[5]'),
    ]:
        assert old in dump
        dump = dump.replace(old, new)
    return dump


def test_a_clean_fabric_says_so_in_one_line(assay, dump, tmp_path):
    (tmp_path / "dump").write_text(dump)
    code, out, _ = assay("compare", "--design", "compute", "--from", str(tmp_path / "dump"))
    assert (code, out) == (0, "fabric compute: match (416 of 416 cables as designed, 416 found)\n")


def test_a_swap_exits_with_1_and_is_one_json_document(assay, dump, tmp_path):
    (tmp_path / "dump").write_text(swapped(dump))
    code, out, _ = assay("compare", "--design", "compute", "--from", str(tmp_path / "dump"), "--format", "json")
    plain = json.loads(out)
    assert (code, plain["verdict"], plain["matching"]) == (1, "mismatch", 414)
    (one,) = plain["discrepancies"]
    assert (one["kind"], one["nodes"], len(one["cables"])) == ("swap", ["n0005", "n0006"], 2)
    assert all(end["rack"] and end["u"] and end["label"] for cable in one["cables"] for end in cable["expected"])


def test_a_mismatch_is_said_in_words_with_its_correction(assay, dump, tmp_path):
    (tmp_path / "dump").write_text(swapped(dump))
    _, out, _ = assay("compare", "--from", str(tmp_path / "dump"))
    assert "swap: 2 cables are exchanged: n0005 mlx5_3" in out
    assert "→ exchange the plugs at leaf-su01-r3 port 3/1" in out


def test_a_truncated_dump_exits_with_2(assay, dump, tmp_path):
    (tmp_path / "dump").write_text(dump[: len(dump) // 2])
    code, out, _ = assay("compare", "--design", "compute", "--from", str(tmp_path / "dump"))
    assert code == 2
    assert "could not tell" in out


def test_a_prompt_is_named_and_changes_nothing(assay, dump, tmp_path):
    (tmp_path / "dump").write_text("root@ufm:~# ibnetdiscover\n" + dump)
    said = "line 1 is none of ibnetdiscover's and was skipped: 'root@ufm:~# ibnetdiscover'"
    code, out, _ = assay("compare", "--design", "compute", "--from", str(tmp_path / "dump"))
    assert (code, out.splitlines()[1:]) == (0, [f"  note: {said}"])
    code, draft, err = assay("learn", "--from", str(tmp_path / "dump"))
    assert (code, err) == (0, f"{tmp_path / 'dump'}: {said}\n")
    assert yaml.safe_load(draft)["kind"] == "FabricDesign"


def test_a_packed_discovery_is_compared_and_learnt_from(assay, dump, tmp_path):
    (tmp_path / "dump").write_bytes(gzip.compress(dump.encode()))
    assert assay("compare", "--design", "compute", "--from", str(tmp_path / "dump"))[0] == 0
    code, draft, _ = assay("learn", "--from", str(tmp_path / "dump"))
    assert (code, yaml.safe_load(draft)["kind"]) == (0, "FabricDesign")


def test_lost_packets_show_on_stderr_only(assay, dump, tmp_path):
    (tmp_path / "dump").write_text(dump)
    (tmp_path / "err").write_text(
        "umad (DR path slid 0; dlid 0; 0,9,1 Attr 0x11:0) bad status 110; Connection timed out\n"
    )
    code, out, _ = assay("compare", "--from", str(tmp_path / "dump"), "--stderr", str(tmp_path / "err"))
    assert code == 2
    assert "bad status 110" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--design", "storage", "--from", "x"], "there is no FabricDesign 'storage'\n  → name one of: compute"),
        (["--design", "compute", "--from", "no/such/dump"], "no/such/dump: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_and_exits_with_2(assay, words, said):
    code, out, err = assay("compare", *words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_scan_runs_the_inventorys_command_and_keeps_the_evidence(assay, dump, tmp_path, repository):
    (tmp_path / "dump").write_text(swapped(dump))
    overlay = repository / "inventory/zz-discovery.yml"
    overlay.parent.mkdir(parents=True, exist_ok=True)
    hosts = {"n0001": {"fabric_discover": ["cat", str(tmp_path / "dump")]}}
    overlay.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    code, out, _ = assay("scan", "compute", "--format", "json")
    assert (code, json.loads(out)["verdict"]) == (1, "mismatch")
    kept = EvidenceStore(repository / ".assay/evidence").latest("fabric-compute")
    assert kept.read("discovery", "text").value == swapped(dump)


@pytest.mark.parametrize(("lost", "verdict"), [(0, "mismatch"), (9, "partial")])
def test_a_scans_command_may_print_a_packed_file(assay, dump, tmp_path, repository, lost, verdict):
    packed = gzip.compress(swapped(dump).encode())
    (tmp_path / "dump").write_bytes(packed[: len(packed) - lost])
    overlay = repository / "inventory/zz-discovery.yml"
    overlay.parent.mkdir(parents=True, exist_ok=True)
    hosts = {"n0001": {"fabric_discover": ["cat", str(tmp_path / "dump")]}}
    overlay.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    _, out, _ = assay("scan", "compute", "--format", "json")
    answer = json.loads(out)
    assert answer["verdict"] == verdict
    assert any("its gzip data break off" in problem for problem in answer["problems"]) == bool(lost)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the discovery is empty"),
        ("hello\n", "not the output of a known tool"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_can(assay, tmp_path, text, said):
    (tmp_path / "dump").write_text(text)
    code, out, err = assay("compare", "--design", "compute", "--from", str(tmp_path / "dump"))
    assert (code, out) == (2, "")
    assert said in err
    assert "ibdiagnet2.db_csv" in err


def test_a_report_of_ports_is_compared_like_any_other(assay, repository, tmp_path):
    fleet = load_fleet(repository)
    compiled = compile_topology(fleet.designs["compute"], fleet)
    lines = []
    for cable in compiled.cables:
        for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
            one, other = (
                f"{'SW' if compiled.devices[end.guid].kind == 'switch' else 'CA'} 7 {end.port} {end.guid}"
                for end in (here, there)
            )
            lines.append(f"{one} 4x NDR - {other} ( '{here.device}' - '{there.device}' )\n")
    cabled = {end.port_id for cable in compiled.cables for end in (cable.a, cable.b)}
    for guid, device in compiled.devices.items():
        empty = [port for port in range(1, 65) if device.kind == "switch" and (guid, port) not in cabled]
        lines = [f"SW 7 {port} {guid} 4x SDR{' ' * 36}'{device.name}'\n" for port in empty] + lines
    (tmp_path / "ports").write_text("".join(lines))
    assert assay("compare", "--design", "compute", "--from", str(tmp_path / "ports"))[0] == 0
    (tmp_path / "ports").write_text("".join(lines[:-1]))
    assert assay("compare", "--design", "compute", "--from", str(tmp_path / "ports"))[0] == 2
