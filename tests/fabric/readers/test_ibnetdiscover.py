"""The reader of ibnetdiscover reads what is there, and says when something is not."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.readers.ibnetdiscover import parse
from assay.model.specs.fabric.cable import PortId

SAMPLES = Path(os.environ.get("ASSAY_SAMPLES", "no samples")) / "infiniband"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="ASSAY_SAMPLES names no folder of real recordings")

DUMP = """\
#
# Topology file: generated on Sat Nov 21 12:00:00 2026
#
# Initiated from node 00000000000000a1 port 00000000000000a1

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xb1
switchguid=0xb1(b1)
Switch	64 "S-00000000000000b1"		# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 7 lmc 0
[1]	"H-00000000000000a1"[1](a1) 		# "n01 mlx5_0" lid 3 4xNDR
[2]	"H-00000000000000a2"[1](a2) 		# "n02 mlx5_0 " lid 4 2xHDR
[33]	"S-00000000000000c1"[1]		# "MF0;spine-1:MQM9700/U1" lid 9 4xNDR

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xc1
switchguid=0xc1(c1)
Switch	64 "S-00000000000000c1"		# "MF0;spine-1:MQM9700/U1" enhanced port 0 lid 9 lmc 0
[1]	"S-00000000000000b1"[33]		# "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xa1
caguid=0xa1
Ca	1 "H-00000000000000a1"		# "n01 mlx5_0"
[1](a1) 	"S-00000000000000b1"[1]		# lid 3 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xa2
caguid=0xa2
Ca	1 "H-00000000000000a2"		# "n02 mlx5_0 "
[1](a2) 	"S-00000000000000b1"[2]		# lid 4 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 2xHDR
"""
WHOLE = parse(DUMP)
LEAF, SPINE, ONE, TWO = (f"0x{int(digits, 16):016x}" for digits in ("b1", "c1", "a1", "a2"))


def test_every_cable_is_read_once_with_its_rate():
    assert {(frozenset(cable[:2]), cable.rate) for cable in WHOLE.cables} == {
        (frozenset({PortId(LEAF, 1), PortId(ONE, 1)}), "4xNDR"),
        (frozenset({PortId(LEAF, 2), PortId(TWO, 1)}), "2xHDR"),
        (frozenset({PortId(LEAF, 33), PortId(SPINE, 1)}), "4xNDR"),
    }
    assert not WHOLE.partial


def test_devices_are_keyed_by_guid_and_named_without_wrapping():
    assert {guid: (d.kind, d.ports, d.name) for guid, d in WHOLE.devices.items()} == {
        LEAF: ("switch", 64, "leaf-1"),
        SPINE: ("switch", 64, "spine-1"),
        ONE: ("hca", 1, "n01 mlx5_0"),
        TWO: ("hca", 1, "n02 mlx5_0"),
    }


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda text: text.replace("\t", ""), id="lost tabs"),
        pytest.param(lambda text: text.replace("\n\n", "\n"), id="missing blank lines"),
        pytest.param(lambda text: "admin@ufm:~$ ibnetdiscover\nLast login: today\n" + text, id="terminal header"),
        pytest.param(lambda text: text + "\nadmin@ufm:~$ exit\n", id="terminal footer"),
        pytest.param(lambda text: text.replace("[33]\t", "[33][ext 17]\t"), id="external port numbers"),
        pytest.param(lambda text: text.replace("lid 7", "lid 65535"), id="lid 65535"),
    ],
)
def test_oddities_met_in_practice_change_nothing(damage):
    odd = parse(damage(DUMP))
    assert (odd.cables, odd.devices, odd.problems) == (WHOLE.cables, WHOLE.devices, ())


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (DUMP, []),
        ("admin@ufm:~$ ibnetdiscover\n" + DUMP, ["line 1: 'admin@ufm:~$ ibnetdiscover'"]),
        (DUMP.replace("\n", "\r\n") + "\r\nroot@ufm:~# ", ["line 36: 'root@ufm:~# '"]),
        (DUMP + "\x1b[0m" + 200 * "x", [f"line 35: '\\x1b[0m{76 * 'x'}'"]),
    ],
)
def test_a_foreign_line_is_told_with_its_number(text, notes):
    found = parse(text)
    assert [note.replace(" is none of ibnetdiscover's and was skipped", "") for note in found.notes] == notes
    assert not found.partial


@given(st.integers(0, len(DUMP) - 1))
def test_a_text_cut_anywhere_is_partial_or_lacks_nothing(length):
    cut = parse(DUMP[:length])
    assert cut.partial or (cut.cables, cut.devices) == (WHOLE.cables, WHOLE.devices)


@given(st.data())
def test_a_lost_line_is_never_a_smaller_fabric(data):
    lines = DUMP.split("\n")
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    rest = parse("\n".join(lines))
    assert rest.partial or (rest.cables, rest.devices) == (WHOLE.cables, WHOLE.devices)


@given(st.integers(0, len(DUMP) - 1), st.text(max_size=8), st.integers(0, 40))
def test_a_garbled_text_is_read_without_an_exception(place, garbage, length):
    parse(DUMP[:place] + garbage + DUMP[place + length :])


@given(st.text(max_size=400), st.text(max_size=80))
def test_any_text_at_all_is_read_without_an_exception(text, stderr):
    assert parse(text, stderr).partial or parse(text).devices


def test_nothing_is_partial():
    assert parse("").problems == ("no cable was discovered",)


@pytest.mark.parametrize(
    "said",
    [
        "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,19) bad status 110; Connection timed out",
        "ibwarn: [7] mad_rpc: unexpected answer",
        "ssh: connect to host ufm-1 port 22: Operation timed out",
        "src/ibnetdisc.c: ERROR; cannot discover further",
    ],
)
def test_a_lost_answer_on_stderr_makes_it_partial(said):
    assert parse(DUMP, said + "\n").problems == (f"stderr: {said}",)


def test_a_timeout_among_the_lines_makes_it_partial():
    assert parse(DUMP + "ibwarn: [7] _do_madrpc: recv failed: Connection timed out\n").partial


def test_a_greeting_on_stderr_is_no_problem():
    assert not parse(DUMP, "ibwarn: [12399] sim_connect: attached as client 0\n").partial
    assert not parse(DUMP, "Warning: Permanently added 'ufm-1' to the list of known hosts.\n").partial


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"S-00000000000000b1"[33]', '"S-00000000000000b1"[34]', "is not listed there"),
        ('"S-00000000000000b1"[33]', '"S-00000000000000b1"[2]', "but that leads to"),
        ("lid 7 2xHDR", "lid 7 2xWARP", "its other end 2xHDR"),
        ("lid 7 2xHDR", "lid 7", "no rate at the end"),
        ('Switch	64 "S-00000000000000c1"', 'Swotch	64 "S-00000000000000c1"', "cannot be read"),
        ('Ca	1 "H-00000000000000a2"', 'Ca	1 "H-00000000000000a1"', "is listed twice"),
        ("[2]\t", "[1]\t", "port 1 of 0x00000000000000b1 is listed twice"),
        ("caguid=0xa2\nCa", "caguid=0xa2\n????\n[1]", "cannot be read"),
    ],
)
def test_contradictions_are_said(old, new, said):
    assert any(said in problem for problem in parse(DUMP.replace(old, new, 1)).problems)


@pytest.mark.parametrize(("said", "rate"), [("1xHDR", "1xHDR"), ("2xEDR", "2xEDR"), ("4xEDR", "2xEDR")])
def test_a_link_is_as_slow_as_the_slower_of_its_ends(said, rate):
    found = parse(DUMP.replace("lid 7 2xHDR", f"lid 7 {said}", 1))
    assert (found.problems, [cable.rate for cable in found.cables].count(rate)) == ((), 1)


def test_a_port_after_an_overwritten_line_belongs_to_nobody():
    assert any("which device" in p for p in parse(DUMP.replace("[33]\t", "~~~~\n[33]\t", 1)).problems)


@needs_samples
def test_a_real_fabric_of_5007_nodes_is_read_whole_and_fast():
    text = (SAMPLES / "selene.compute.txt").read_text()
    start = time.process_time()
    selene = parse(text)
    assert time.process_time() - start < 3, "0.25 s of CPU where this was written"
    assert (len(selene.devices), len(selene.cables), selene.problems) == (5007, 12852, ())


@needs_samples
def test_a_small_real_fabric_is_read_whole():
    small = parse((SAMPLES / "ufm_small.txt").read_text())
    assert (len(small.devices), len(small.cables), small.problems) == (15, 16, ())


@needs_samples
def test_the_other_form_of_ibnetdiscover_is_not_taken_for_an_empty_fabric():
    assert parse((SAMPLES / "infiniband_exporter/ibnetdiscover/test.out").read_text()).partial
