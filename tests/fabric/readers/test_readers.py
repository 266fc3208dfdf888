"""Every reader: one fabric in all its forms, and texts that were cut, garbled or lost a line."""

import os
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.readers.format_detection import FORMATS, detect_format, read_tool_output, read_topology
from assay.fabric.readers.ibnetdiscover import parse as ibnetdiscover
from assay.fabric.readers.port_guids import read_port_guids, resolve_port_guids
from assay.model.errors import AssayError

RECORDINGS = Path(__file__).parent / "recordings"
FILES = {
    "ibnetdiscover": "ibnetdiscover.txt",
    "ibnetdiscover -p": "ibnetdiscover-p.txt",
    "iblinkinfo -l": "iblinkinfo.txt",
    "ibdiagnet2.db_csv": "db_csv.txt",
    "UFM ports (JSON)": "ufm_ports.json",
    "ibqueryerrors": "ibqueryerrors.txt",
    "smpquery": "smpquery.txt",
}
"""The first three, ibqueryerrors and smpquery were printed by the real tools for a simulated fabric of three
adapters on two leaves and a spine; the others are made by hand, of the same fabric."""
TEXTS = {name: (RECORDINGS / file).read_text() for name, file in FILES.items()}
NVLINK = "NMX Controller topology (JSON)"
LLDP = "LLDP (lldpctl, SONiC, NVUE, OpenConfig)"
ELSEWHERE = (NVLINK, LLDP)
"""They describe no InfiniBand fabric: see test_lldp.py, and for a rack tests/fabric/compare/test_nvlink.py."""
TOPOLOGIES = [form.name for form in FORMATS if not form.content and form.name not in ELSEWHERE]
SINGLE = [form.name for form in FORMATS if form.content]
KNOWN = read_port_guids(TEXTS["ibnetdiscover"])
SEVERAL_ANSWERS = ("smpquery",)
"""Nothing in these texts says how many answers there should be; each by itself is whole or is said not to be."""


def links(discovery):
    return {(frozenset(cable[:2]), cable.rate) for cable in resolve_port_guids(discovery, KNOWN).cables}


def said(discovery):
    """Return what a text says that must not get lost silently: cables of a topology, facts of the others."""
    devices = {guid: one._replace(description="", ports=0) for guid, one in discovery.devices.items()}
    return links(discovery), devices, {} if discovery.cables else discovery.facts


def part_of(cut, whole):
    """Say whether what is said, is said of the same things and in the same words."""
    answers = [(facts, whole.facts[port]) for port, facts in cut.facts.items()]
    return all(one.counters.items() <= other.counters.items() and one.state == other.state for one, other in answers)


WHOLE = {name: said(read_tool_output(text)) for name, text in TEXTS.items()}


def test_there_is_a_recording_of_every_format():
    assert list(FILES) == [form.name for form in FORMATS if form.name not in ELSEWHERE]


@pytest.mark.parametrize("name", FILES)
def test_a_text_is_recognised_by_what_it_looks_like(name):
    assert detect_format(TEXTS[name]).name == name
    assert detect_format("Last login: today\nadmin@ufm:~$ tool\n" + TEXTS[name]).name == name
    assert detect_format(TEXTS[name].replace("\n", "\r\n")).name == name
    assert detect_format("#\n" * 50_000 + TEXTS[name]).name == name


@pytest.mark.parametrize("name", FILES)
def test_a_whole_text_is_read_whole(name):
    assert not read_tool_output(TEXTS[name]).problems
    assert not read_tool_output(TEXTS[name].replace("\n", "\r\n")).problems


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_tool_finds_the_same_cables(name):
    found = read_topology(TEXTS[name])
    assert len(found.cables) == 7
    assert links(found) == links(ibnetdiscover(TEXTS["ibnetdiscover"]))
    kinds = {guid: device.kind for guid, device in ibnetdiscover(TEXTS["ibnetdiscover"]).devices.items()}
    assert {guid: device.kind for guid, device in resolve_port_guids(found, KNOWN).devices.items()} == kinds


@pytest.mark.parametrize("name", SINGLE)
def test_what_carries_no_topology_is_not_compared_with_a_design(name):
    with pytest.raises(AssayError, match="no whole fabric") as trouble:
        read_topology(TEXTS[name])
    assert "ibnetdiscover" in trouble.value.fix


@pytest.mark.parametrize("file", ["iblinkinfo-grouped.txt", "ibnetdiscover-f.txt"])
def test_other_forms_of_the_same_tool_find_the_same_cables(file):
    text = (RECORDINGS / file).read_text()
    found = read_topology(text)
    assert (links(found), found.problems) == (links(ibnetdiscover(TEXTS["ibnetdiscover"])), ())
    lines = text.rstrip().split("\n")
    for index in range(len(lines)):
        rest = read_topology("\n".join(lines[:index] + lines[index + 1 :]) + "\n")
        assert rest.problems or links(rest) == links(found), lines[index]


def test_a_topology_file_is_refused_as_a_discovery_with_what_to_do():
    with pytest.raises(AssayError, match="names devices and no GUIDs") as trouble:
        read_topology("MQM8700 leaf-0\n   P1 -4x-50G-> HCA n00 mlx5_0/P1\n")
    assert "assay fabric import" in trouble.value.fix


def test_a_list_of_devices_is_refused_with_what_to_run():
    with pytest.raises(AssayError, match="a list of devices") as trouble:
        read_topology((RECORDINGS / "ibnetdiscover-l.txt").read_text())
    assert "without -l" in trouble.value.fix


@pytest.mark.parametrize("text", ["", "   \n", "hello\n", "{}", "\x00\x01\x02", "[1, 2", "LID 7\n"])
def test_what_no_tool_prints_is_refused_with_what_is_known(text):
    for look in (read_tool_output, read_topology):
        with pytest.raises(AssayError) as trouble:
            look(text)
        assert all(name in trouble.value.fix for name in FILES)


def reader(name):
    form = next(form for form in FORMATS if form.name == name)
    module, _, function = form.reader.partition(":")
    return getattr(import_module(module), function)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_a_text_cut_anywhere_says_so_or_lacks_nothing(name, data):
    cut = reader(name)(TEXTS[name][: data.draw(st.integers(0, len(TEXTS[name]) - 1))])
    if not cut.problems:
        assert said(cut) == WHOLE[name] or (name in SEVERAL_ANSWERS and part_of(cut, read_tool_output(TEXTS[name])))


@pytest.mark.parametrize("name", [name for name in FILES if name not in SEVERAL_ANSWERS])
def test_a_text_cut_after_any_line_says_so(name):
    lines = TEXTS[name].rstrip().split("\n")
    for count in range(len(lines)):
        cut = reader(name)("".join(f"{line}\n" for line in lines[:count]))
        assert cut.problems or said(cut) == WHOLE[name], lines[count]


@pytest.mark.parametrize("name", FILES)
def test_no_line_is_lost_unnoticed(name):
    lines = TEXTS[name].split("\n")
    for index in range(len(lines)):
        rest = reader(name)("\n".join(lines[:index] + lines[index + 1 :]))
        assert rest.problems or said(rest) == WHOLE[name], lines[index]


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_a_garbled_text_is_read_without_an_exception(name, data):
    text = TEXTS[name]
    place, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 60))
    garbage = data.draw(st.text(max_size=12) | st.sampled_from(["9" * 5000, '"', "\n", "0x", "N/A", "٣", "\x00"]))
    reader(name)(text[:place] + garbage + text[place + length :])


@pytest.mark.parametrize("name", FILES)
@given(text=st.text(max_size=200), stderr=st.text(max_size=60))
def test_any_text_at_all_is_partial_and_no_exception(name, text, stderr):
    assert reader(name)(text, stderr).partial


@pytest.mark.parametrize("name", FILES)
def test_a_timeout_on_stderr_makes_it_partial(name):
    lost = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,19) bad status 110; Connection timed out"
    assert f"stderr: {lost}" in read_tool_output(TEXTS[name], lost).problems
    greeting = "ibwarn: [7] sim_connect: attached as client 1"
    assert not read_tool_output(TEXTS[name], greeting).problems


SAMPLES = Path(os.environ.get("ASSAY_SAMPLES", "no samples")) / "infiniband" / "infiniband_exporter"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="ASSAY_SAMPLES names no folder of real recordings")


@needs_samples
def test_real_reports_of_ports_are_read_line_by_line():
    found = read_topology((SAMPLES / "ibnetdiscover" / "test.out").read_text())
    assert len(found.cables) == 4
    assert [one for one in found.problems if "cannot be read" in one] == []
    assert found.partial, "one switch of it was left out of the sample"
