"""What is easy to read wrongly in these texts, each reader with its own traps."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.link_words import parse_port_state, rate_from_bits, rate_from_lanes
from assay.fabric.readers import (
    ibdiagnet_csv,
    iblinkinfo,
    ibnetdiscover,
    ibqueryerrors,
    port_guids,
    smpquery,
    ufm,
)
from assay.model.specs.fabric.cable import PortId

RECORDINGS = Path(__file__).parent / "recordings"
LEAF, OTHER, SPINE = "0xb83f000000001000", "0xb83f000000001010", "0xb83f000000002000"
ONE = "0xa088000000000000"


def recorded(file):
    return (RECORDINGS / file).read_text()


KNOWN = port_guids.read_port_guids(recorded("ibnetdiscover.txt"))


@pytest.mark.parametrize(
    ("width", "speed", "rate"),
    [(2, 2048, "4xNDR"), (2, 2052, "4xNDR"), (16, 1024, "2xHDR"), (1, 256 + 4, "1xFDR"), (2, 0, ""), (3, 4, ""),
     (2, 0x10000 + 4, "4xFDR10"), (2, 4096 + 2048, "4xXDR")],
)  # fmt: skip
def test_of_a_speed_that_is_a_bit_field_the_fastest_bit_counts(width, speed, rate):
    assert rate_from_bits(width, speed) == rate


@pytest.mark.parametrize(
    ("width", "lane", "rate"),
    [("4X", "53.125", "4xHDR"), ("4x", "106.25", "4xNDR"), ("1x", "200", "1xXDR"), ("4X", "10.0", "4xQDR"),
     ("4x", "50", "4xHDR"), ("12X", "25.78125", "12xEDR"), ("N/A", "N/A", ""), ("4x", "51", "")],
)  # fmt: skip
def test_lanes_are_told_in_gigabits_with_and_without_line_coding(width, lane, rate):
    assert rate_from_lanes(width, lane) == rate


def test_a_disabled_port_says_down_and_only_its_physical_state_says_why():
    assert parse_port_state("Down", "Disabled") == ("disabled", "disabled")
    assert parse_port_state("Initialize", "LinkUp") == ("init", "linkup")
    assert parse_port_state("DOWN", "POLL") == ("down", "poll")


def test_a_port_without_a_cable_has_no_rate_although_one_is_printed():
    found = ibnetdiscover.parse_ports(recorded("ibnetdiscover-p.txt"))
    assert found.facts[PortId(OTHER, 2)].rate == ""
    assert not found.partial
    unquoted = "SW   479  1 0x0002c9020040f161 4x QDR" + " " * 36 + "Infiniscale-IV Mellanox Technologies\n"
    assert ibnetdiscover.parse_ports(recorded("ibnetdiscover-p.txt") + unquoted).problems == ()


def test_a_rate_of_question_marks_is_no_rate():
    text = recorded("ibnetdiscover-p.txt").replace("4x HDR - CA", "4x ??? - CA", 1)
    assert any("no rate" in problem for problem in ibnetdiscover.parse_ports(text).problems)


def test_adapters_named_by_their_port_are_named_by_their_device_again():
    text = recorded("iblinkinfo.txt")
    assert "0xa088000000000001" in iblinkinfo.parse(text).devices
    assert ONE in port_guids.resolve_port_guids(iblinkinfo.parse(text), KNOWN).devices


def test_ports_that_are_down_are_facts_of_iblinkinfo():
    facts = iblinkinfo.parse(recorded("iblinkinfo.txt")).facts
    assert (facts[PortId(OTHER, 2)].state, facts[PortId(OTHER, 2)].physical) == ("down", "polling")
    assert (facts[PortId(OTHER, 1)].state, facts[PortId(OTHER, 1)].rate) == ("active", "4xHDR")


def test_another_end_that_did_not_answer_is_no_missing_cable():
    link = "==( 4X        53.125 Gbps Active/  LinkUp)==>"
    line = f'0xb83f000000001010 "   MF0;leaf-1:MQM9700/U1"      6    2[  ] {link}   [  ] "" (Port not available)'
    lines = recorded("iblinkinfo.txt").splitlines()
    index = next(i for i, one in enumerate(lines) if "    2[  ] ==(                Down" in one and "leaf-1" in one)
    lines[index] = line
    (problem,) = iblinkinfo.parse("\n".join(lines)).problems
    assert "did not answer" in problem


def test_iblinkinfo_without_l_says_which_other_end_it_does_not_name():
    link = "==( 4X        53.125 Gbps Active/  LinkUp)==>"
    text = f'CA: n02 mlx5_0:\n      0xa088000000000201      5    1[  ] {link}       6    1[  ] "x" ( )\n'
    assert "the other end of port 1 of 0xa088000000000201 is not known" in iblinkinfo.parse(text).problems[0]


def test_the_sum_over_all_ports_is_no_port():
    found = ibqueryerrors.parse(recorded("ibqueryerrors.txt"))
    (facts,) = found.facts.values()
    assert (facts.port, dict(facts.counters)) == (
        PortId(LEAF, 1),
        {"SymbolErrorCounter": 65535, "LinkDownedCounter": 7},
    )
    assert facts.saturated == {"SymbolErrorCounter"}


def test_counters_of_the_details_are_not_believed():
    text = recorded("ibqueryerrors.txt").replace(
        "port 1: [Sym", "port 1: [PortRcvErrors == 33] [PortInactiveDiscards == 33] [Sym"
    )
    (facts,) = ibqueryerrors.parse(text).facts.values()
    assert facts.counters["PortRcvErrors"] == 33
    assert "PortInactiveDiscards" not in facts.counters


def test_smpquery_tells_a_node_and_its_port():
    found = smpquery.parse(recorded("smpquery.txt"))
    assert found.problems == ()
    assert found.devices[LEAF].name == "leaf-0"
    facts = found.facts[PortId(LEAF, 1)]
    assert (facts.state, facts.physical, facts.rate) == ("active", "linkup", "4xHDR")


def test_ten_gigabits_a_lane_are_qdr_only_where_it_is_said_that_there_is_nothing_faster():
    text = recorded("smpquery.txt")
    without = "\n".join(line for line in text.splitlines() if not line.startswith("LinkSpeedExt")) + "\n"
    assert "the rate of Lid 1 port 1 is missing" in smpquery.parse(without).problems
    none = text.replace(
        "LinkSpeedExtActive:..............53.125 Gbps", "LinkSpeedExtActive:..............No Extended Speed"
    )
    assert smpquery.parse(none).facts[PortId(LEAF, 1)].rate == "4xQDR"


@pytest.mark.parametrize("switch", ["leaf-1", "spine-0"])
def test_a_link_info_cut_off_within_a_switch_that_leads_nowhere_else_is_not_a_small_fabric(switch):
    lines = recorded("iblinkinfo.txt").splitlines()
    index = next(index for index, line in enumerate(lines) if line[20:].lstrip().startswith(f"MF0;{switch}:"))
    cut = iblinkinfo.parse("\n".join(lines[: index + 1]))
    assert any("lists 1 ports" in problem for problem in cut.problems)


def test_db_csv_tells_modules_labels_and_counters():
    facts = ibdiagnet_csv.parse_db_csv(recorded("db_csv.txt")).facts
    one, two = facts[PortId(LEAF, 1)], facts[PortId(LEAF, 2)]
    assert one.module == {
        "vendor": "Maker", "part": "PART-1", "serial": "SER0001", "technology": "Active fiber",
        "temperature_c": 42.0, "length_m": 3.0,
    }  # fmt: skip
    assert (one.label, one.rate, one.state) == ("1/1/1", "4xHDR", "active")
    assert one.counters == {
        "SymbolErrorCounter": 65535, "LinkDownedCounter": 300, "PortXmitDiscards": 3, "PortXmitWait": 12,
    }  # fmt: skip
    assert (one.saturated, two.saturated) == ({"SymbolErrorCounter"}, {"LinkDownedCounter"})
    assert "temperature_c" not in two.module
    assert (facts[PortId(OTHER, 2)].state, PortId(OTHER, 0) in facts) == ("down", False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("END_LINKS", "END_LINK", "section LINK ends here, but LINKS started"),
        ("START_LINKS", "START_LANKS", "there is no section LINKS"),
        (f"{ONE},1,{LEAF},1\n", "", f"port 1 of {ONE} is up, but no link leads to it"),
        (f"{LEAF},{LEAF},1,1,2,1028,5,4,N/A\n", "", f"port 1 of {LEAF} has a link, but is not among the ports"),
        (f"{LEAF},{LEAF},1,1,2,1028,5,4,N/A", f"{LEAF},{LEAF},1,1,2,514,5,4,N/A", "report 4xEDR and 4xHDR"),
        (f"{LEAF},{LEAF},1,1,2,1028,5,4,N/A", f"{LEAF},{LEAF},1,1,N/A,1028,5,4,N/A", "rows cannot be read"),
        (f"{LEAF},{LEAF},1,1,2,1028,5,4,N/A", f"{LEAF},{LEAF},1,1,2", "too few or too many cells"),
        ('"n00 mlx5_0",1,1', '"n00 mlx5_0",1,9', f"{ONE} is not among the nodes"),
    ],
)
def test_sections_of_a_db_csv_are_held_against_each_other(old, new, said):
    text = recorded("db_csv.txt")
    assert old in text
    assert any(said in problem for problem in ibdiagnet_csv.parse_db_csv(text.replace(old, new, 1)).problems)


@pytest.mark.parametrize(("change", "said"), [
    (lambda document: document["data"][0].update(peer="N/A"), "is up, and its `peer` is not told"),
    (lambda document: document["data"][0].pop("active_speed"), "reports no rate, its other end 4xHDR"),
    (lambda document: document["data"][0].pop("name"), "port 1 has no `name` such as GUID_PORT"),
    (lambda document: document["data"].append(document["data"][0]), "is listed twice"),
    (lambda document: document.update(total_resources=99), "one page: 15 of 99"),
    (lambda document: document.update(data="Session expired"), "is not a list of ports"),
])  # fmt: skip
def test_what_ufm_leaves_out_is_told(change, said):
    document = {"data": json.loads(recorded("ufm_ports.json"))}
    change(document)
    problems = ufm.parse(json.dumps(document)).problems
    assert any(said in problem for problem in problems), problems


@given(st.data())
def test_ufm_may_say_anything_of_a_port(data):
    links = json.loads(recorded("ufm_ports.json"))
    odd = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=20)
        | st.lists(st.integers(), max_size=2)
    )
    links[0][data.draw(st.sampled_from(sorted(links[0])))] = data.draw(odd)
    links[1] = data.draw(odd | st.just(links[1]))
    ufm.parse(json.dumps(links))


@pytest.mark.parametrize(
    "reader",
    [
        iblinkinfo.parse,
        ibnetdiscover.parse_ports,
        ibqueryerrors.parse,
        smpquery.parse,
        ibdiagnet_csv.parse_db_csv,
    ],
    ids=lambda reader: f"{reader.__module__.rpartition('.')[2]}.{reader.__name__}",
)
@pytest.mark.parametrize("piece", ['"', '0x1 "', ":", '" ( ) ', "# Port info: DR path 0,", "[A == 1] ", "9", ","])
def test_a_line_without_an_end_takes_no_time(reader, piece):
    start = time.process_time()
    assert reader(piece * 20_000).partial
    assert time.process_time() - start < 2, "milliseconds where this was written"


@pytest.mark.parametrize("file", ["ibnetdiscover.txt", "db_csv.txt"])
def test_each_discovery_tells_which_port_of_an_adapter_has_a_guid(file):
    adapters = {f"0xa088000000000{n}01": PortId(f"0xa088000000000{n}00", 1) for n in range(3)}
    assert port_guids.read_port_guids(recorded(file)) == adapters
