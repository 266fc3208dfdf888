"""Reads network adapters: InfiniBand and RoCE (HCAs), Ethernet (NICs that are hardware, bonds), firmware settings.

Readings directly below an HCA are of its first port; other ports are in `ports`. `roce` is read where that port is
Ethernet: its interface, how it sorts and pauses packets, and counters by names of our own: drivers differ in theirs.
Settings are the value in force and
the one from the next boot on, as `mstconfig -e query` prints them in a table. Its columns depend on the firmware:
`Default` and `Current` may be missing. A cell without a value is `N/A`. Refusals are lines that begin with `-E-`.
(Mellanox/mstflint, mlxconfig/mlxcfg_ui.cpp.) Other sources: iproute2, dcb/dcb_pfc.c and dcb_app.c; NVIDIA community,
mlnx_qos; Linux, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst, bnxt_ethtool.c and
ice_ethtool.c.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.probe.devices.pci import parse_pci_slot, read_numa_node
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, require_text, run_tool

INFINIBAND_CLASS = "/sys/class/infiniband"

PORT_COUNTERS = (  # InfiniBand Architecture Specification, PortCounters, as ib_core names them
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_constraint_errors",
    "port_xmit_constraint_errors",
    "port_xmit_discards",
    "port_xmit_wait",
    "port_rcv_data",
    "port_xmit_data",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
)
HW_COUNTERS = (  # mlx5's own: retransmissions, and a host that is too slow
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
)
ROCE_HW_COUNTERS = ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "roce_adp_retrans")
ROCE_COUNTERS = {  # our name → the names that `ethtool -S` prints with mlx5, bnxt and ice; several are added up
    "link_downs": r"link_down_events(?:_phy)?",
    "crc_errors": r"rx_crc_errors_phy|rx_fcs_err_frames|rx_crc_errors\.nic",
    "fec_corrected_bits": r"rx_corrected_bits(?:_phy)?",
    "fec_uncorrected_symbols": r"rx_pcs_symbol_err(?:_phy)?",
    "discards_in": r"rx_discards_phy|rx_prio\d_(?:buf|cong)_discard|rx_discard_packets_cos\d|rx_dropped\.nic",
    "discards_out": r"tx_discards_phy|tx_discard_packets_cos\d",
    "pauses_in": r"rx_prio\d_pause|rx_pfc_ena_frames_pri\d|rx_priority_\d_xoff\.nic",
    "pauses_out": r"tx_prio\d_pause|tx_pfc_ena_frames_pri\d|tx_priority_\d_xoff\.nic",
    "pause_storms": r"tx_pause_storm_(?:warning|error)_events",
}
STATISTIC = re.compile(r"(?m)^\s*(\S+): (\d+)$")
QOS_S = 2.0
QOS_TOOL_S = 0.6
MAX_PKEYS = 128
NET_CLASS = "/sys/class/net"
ETHERNET = "1"  # ARPHRD_ETHER; 32 is IP over InfiniBand
NIC_COUNTERS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped", "rx_missed_errors")
BONDING_MASTERS = f"{NET_CLASS}/bonding_masters"
TOOL = "mstconfig"
ALLOWED_S = 5.0
HEADING = "Configurations:"
COLUMNS = {"Default": "default", "Current": "current", "Next Boot": "next_boot"}
MARKS = ("*", "RO")  # differs from its default or present value; read only
NO_VALUE = "N/A"
Row = dict[str, str]


def read_hcas(root: NodeRoot) -> LazyTree:
    """Return the `hca` branch, adapters by kernel name."""
    try:
        names = root.list_names(INFINIBAND_CLASS)
    except OSError as error:
        return leaf_for_error(INFINIBAND_CLASS, error)
    return {name: _adapter(root, f"{INFINIBAND_CLASS}/{name}") for name in names} or absent(
        f"{INFINIBAND_CLASS} is empty"
    )


def _adapter(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "guid": root.defer_read(f"{folder}/node_guid", parse_guid),
        "firmware": root.defer_read(f"{folder}/fw_ver", require_text),
        "board_id": root.defer_read(f"{folder}/board_id"),
        "type": root.defer_read(f"{folder}/hca_type"),
        "pci": root.defer_read(f"{folder}/device/uevent", parse_pci_slot),
        "numa_node": partial(read_numa_node, root, f"{folder}/device"),
        **read_hca_port(root, f"{folder}/ports/1"),
        "ports": partial(_other_ports, root, f"{folder}/ports"),
        "roce": partial(_read_roce, root, f"{folder}/ports/1"),
    }


def _read_roce(root: NodeRoot, port: str) -> ReadingTree | LazyTree:
    layer = root.read_leaf(f"{port}/link_layer")
    if layer.get("value") != "Ethernet":
        return absent(f"{port}/link_layer: {layer['value']}") if "value" in layer else layer
    interface = root.read_leaf(f"{port}/gid_attrs/ndevs/0", require_text)
    if "value" not in interface:
        return interface
    name = interface["value"]
    return {
        "interface": interface,
        "mtu_bytes": root.defer_read(f"{NET_CLASS}/{name}/mtu", int),
        "qos": TimedQuestion(QOS_S, partial(read_qos, name)),
        "counters": TimedQuestion(QOS_S, partial(run_tool, ["ethtool", "-S", name], QOS_S, parse_statistics)),
        "hw_counters": {name: root.defer_read(f"{port}/hw_counters/{name}", int) for name in ROCE_HW_COUNTERS},
    }


def parse_statistics(text: str) -> ReadingTree:
    """Return the counters of `ROCE_COUNTERS` from what `ethtool -S` printed."""
    every = {name: int(number) for name, number in STATISTIC.findall(text)}
    if not every:
        return _refused("ethtool", text)
    tree: ReadingTree = {}
    for ours, form in ROCE_COUNTERS.items():
        numbers = [number for name, number in every.items() if re.fullmatch(form, name)]
        tree[ours] = value(sum(numbers)) if numbers else unsupported(f"ethtool -S has no {ours} of this driver")
    return tree


def read_qos(interface: str) -> ReadingTree:
    """Return `pfc` (the priorities that are paused), `dscp` (priorities by DSCP) and `trust` of an interface.

    It asks dcb, which is of iproute2, else mlnx_qos, which is of NVIDIA's drivers.
    """
    pfc = run_tool(["dcb", "-j", "pfc", "show", "dev", interface], QOS_TOOL_S, parse_dcb_pfc)
    if "absent" in pfc:
        tree = run_tool(["mlnx_qos", "-i", interface], QOS_S - QOS_TOOL_S, parse_mlnx_qos)
        return unsupported("neither dcb nor mlnx_qos is installed; install iproute2 6") if "absent" in tree else tree
    dscp = run_tool(["dcb", "-N", "-j", "app", "show", "dev", interface], QOS_TOOL_S, parse_dcb_app)
    if "value" not in dscp:
        return {"pfc": pfc, "dscp": dscp, "trust": dscp}
    # Drivers trust DSCP while they have a priority for one (mlx5, en_dcbnl.c: mlx5e_dcbnl_ieee_setapp and _delapp).
    return {"pfc": pfc, "dscp": dscp, "trust": value("dscp" if dscp["value"] else "pcp")}


def parse_dcb_pfc(text: str) -> ReadingTree:
    """Return the paused priorities from `dcb -j pfc show`."""
    enabled = (_parse_object(text) or {}).get("prio_pfc")
    if not isinstance(enabled, list):
        return _refused("dcb", text)
    return value([priority for priority, on in enumerate(enabled) if on in (True, "on")])


def parse_dcb_app(text: str) -> ReadingTree:
    """Return the priority of each DSCP, `26:3`, from `dcb -N -j app show`."""
    document = _parse_object(text.strip() or "{}")
    if document is None:
        return _refused("dcb", text)
    return value([f"{dscp}:{priority}" for dscp, priority in document.get("dscp_prio", ())])


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def parse_mlnx_qos(text: str) -> ReadingTree:
    """Return the `qos` branch from what `mlnx_qos -i` printed."""
    trust = re.search(r"(?m)^Priority trust state: (\w+)", text)
    enabled = re.search(r"(?m)^\s*enabled((?:\s+[01])+)\s*$", text)
    if not trust or not enabled:
        return _refused("mlnx_qos", text)
    lists = re.findall(r"(?m)^\s*prio:(\d) dscp:([\d,]+)", text)
    return {
        "pfc": value([priority for priority, on in enumerate(enabled[1].split()) if on == "1"]),
        "dscp": value([f"{int(dscp)}:{of}" for of, many in lists for dscp in many.split(",") if dscp]),
        "trust": value(trust[1]),
    }


def _refused(tool: str, text: str) -> ReadingTree:
    leaf = unsupported if "not supported" in text or "no stats available" in text else failed
    return leaf(f"{tool}: {text.strip()[:80] or 'no output'}")


def _other_ports(root: NodeRoot, folder: str) -> ReadingTree | LazyTree:
    """Return the ports beyond the first; ConnectX-7 cards in GPU nodes have none."""
    try:
        names = [name for name in root.list_names(folder) if name != "1"]
    except OSError as error:
        return leaf_for_error(folder, error)
    return {name: read_hca_port(root, f"{folder}/{name}") for name in names} or absent("the adapter has one port")


def read_hca_port(root: NodeRoot, port: str) -> LazyTree:
    """Return a port's readings. Counters saturate, link_downed at 255 on many firmwares."""
    return {
        "link_layer": root.defer_read(f"{port}/link_layer"),
        "state": root.defer_read(f"{port}/state", parse_hca_port_state),
        "phys_state": root.defer_read(f"{port}/phys_state", parse_hca_port_state),
        "rate_gbps": root.defer_read(f"{port}/rate", parse_rate_gbps),
        "port_guid": root.defer_read(f"{port}/gids/0", parse_port_guid),
        "lid": root.defer_read(f"{port}/lid", parse_number),
        "sm_lid": root.defer_read(f"{port}/sm_lid", parse_number),
        "pkeys": partial(_read_pkeys, root, f"{port}/pkeys"),
        "counters": {name: root.defer_read(f"{port}/counters/{name}", int) for name in PORT_COUNTERS},
        "hw_counters": {name: root.defer_read(f"{port}/hw_counters/{name}", int) for name in HW_COUNTERS},
    }


def _read_pkeys(root: NodeRoot, folder: str) -> ReadingTree:
    """Return the P_Keys up to the first empty entry, as `0xffff`. A subnet manager fills the table from its start."""
    keys: list[str] = []
    for index in range(MAX_PKEYS):
        try:
            key = int(root.read_text(f"{folder}/{index}"), 16)
        except OSError as error:
            return value(keys) if keys else leaf_for_error(f"{folder}/{index}", error)
        if not key:
            break
        keys.append(f"{key:#06x}")
    return value(keys)


def parse_guid(text: str) -> str:
    """Turn `b83f:d203:00a1:0000` into `0xb83fd20300a10000`. Raises ValueError unless there are 16 hex digits."""
    digits = text.replace(":", "").lower()
    if len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(text)
    return f"0x{digits}"


def parse_port_guid(gid: str) -> str:
    """Return the port's GUID, the lower half of its GID. Raises ValueError unless the GID has eight groups."""
    groups = gid.split(":")
    if len(groups) != 8:
        raise ValueError(gid)
    return parse_guid("".join(groups[4:]))


def parse_number(text: str) -> int:
    """Turn `0x1f` into 31. Raises ValueError."""
    return int(text, 0)


def parse_hca_port_state(text: str) -> str:
    """Turn `4: ACTIVE` into `ACTIVE`. Raises ValueError where the number or the name is missing."""
    number, name = text.split(": ", 1)
    int(number)
    return name


def parse_rate_gbps(text: str) -> int | float:
    """Turn `400 Gb/sec (4X NDR)` into 400. Raises ValueError for another unit."""
    number, unit = text.split()[:2]
    if unit != "Gb/sec":
        raise ValueError(text)
    gbps = float(number)
    return int(gbps) if gbps.is_integer() else gbps


def read_nics(root: NodeRoot) -> LazyTree:
    """Return the `nic` branch, interfaces by name."""
    try:
        names = root.list_names(NET_CLASS)
    except OSError as error:
        return leaf_for_error(NET_CLASS, error)
    interfaces = {
        name: _interface(root, f"{NET_CLASS}/{name}") for name in names if _is_hardware(root, f"{NET_CLASS}/{name}")
    }
    return interfaces or absent(f"no Ethernet interface with a device behind it in {NET_CLASS}")


def _is_hardware(root: NodeRoot, folder: str) -> bool:
    try:
        return root.exists(f"{folder}/device") and root.read_text(f"{folder}/type") == ETHERNET
    except OSError:
        return False


def _interface(root: NodeRoot, folder: str) -> LazyTree:
    def read_speed() -> ReadingTree:
        leaf = root.read_leaf(f"{folder}/speed", int)  # sysfs writes -1 where there is no link
        return absent(f"{folder}/speed: the driver knows no speed") if leaf.get("value", 0) < 0 else leaf

    return {
        "carrier": root.defer_read(f"{folder}/carrier", parse_carrier),
        "speed_mbps": read_speed,
        "duplex": root.defer_read(f"{folder}/duplex"),
        "mtu_bytes": root.defer_read(f"{folder}/mtu", int),
        "mac": root.defer_read(f"{folder}/address"),
        "carrier_changes": root.defer_read(f"{folder}/carrier_changes", int),
        "pci": root.defer_read(f"{folder}/device/uevent", parse_pci_slot),
        "numa_node": partial(read_numa_node, root, f"{folder}/device"),
        "counters": {name: root.defer_read(f"{folder}/statistics/{name}", int) for name in NIC_COUNTERS},
    }


def parse_carrier(text: str) -> bool:
    """Turn `1` or `0` into a bool. Raises ValueError for anything else."""
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def read_bonds(root: NodeRoot) -> LazyTree:
    """Return the `bond` branch by name; it is empty where the kernel has no bonds."""
    masters = root.read_leaf(BONDING_MASTERS, str.split)
    if "value" in masters:
        return {name: _bond(root, f"{NET_CLASS}/{name}/bonding") for name in masters["value"]}
    return {} if "absent" in masters else masters


def _bond(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "mode": root.defer_read(f"{folder}/mode", parse_bond_mode),
        "members": root.defer_read(f"{folder}/slaves", str.split),
        "up": partial(_members_up, root, f"{folder}/slaves"),
    }


def _members_up(root: NodeRoot, path: str) -> ReadingTree:
    """Return the names of the members whose link is up."""
    try:
        members = root.read_text(path).split()
        return value(
            [name for name in members if root.read_text(f"{NET_CLASS}/{name}/bonding_slave/mii_status") == "up"]
        )
    except OSError as error:
        return leaf_for_error(path, error)


def parse_bond_mode(text: str) -> str:
    """Turn `802.3ad 4` into `802.3ad`. Raises ValueError where the number is missing."""
    name, number = text.split()
    int(number)
    return name


def read_adapter_settings(root: NodeRoot, asked: str) -> ReadingTree:
    """Return the `adapter_settings` branch: by place and name, `current` and `next_boot`.

    `asked` is `PLACE=NAME+NAME,…`; a place is a PCI address or the name of an interface.
    """
    ends_at = time.monotonic() + ALLOWED_S
    tree: ReadingTree = {}
    wanted: dict[str, list[str]] = {}
    addresses: dict[str, str] = {}
    for entry in filter(None, asked.split(",")):
        place, _, names = entry.partition("=")
        address = value(place)
        if ":" not in place:
            address = root.read_leaf(f"/sys/class/net/{place}/device/uevent", parse_pci_slot)
        if "value" in address:
            addresses[place] = address["value"]
            wanted[place] = names.split("+")
        else:
            tree[place] = address
    answers = _ask(addresses, wanted, ends_at)
    # An adapter that does not know one of the names refuses all of them. Then it is asked for its whole table.
    refused = {place: addresses[place] for place, text in answers.items() if isinstance(text, str) and "-E-" in text}
    answers |= _ask(refused, {}, ends_at)
    for place, answer in answers.items():
        tree[place] = answer if isinstance(answer, dict) else parse_settings(answer, wanted[place])
    return tree


def _ask(
    addresses: Mapping[str, str], names: Mapping[str, Sequence[str]], ends_at: float
) -> dict[str, str | ReadingTree]:
    """Return what mstconfig prints for each adapter, or why it prints nothing. It runs for all of them at once."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    answers: dict[str, str | ReadingTree] = {}
    for place, address in addresses.items():
        try:
            started[place] = subprocess.Popen(
                [TOOL, "-d", address, "-e", "query", *names.get(place, ())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except FileNotFoundError:
            answers[place] = absent(f"{TOOL} is not installed")
        except OSError as error:
            answers[place] = failed(f"{TOOL} could not be started: {error.strerror}")
    for place, process in started.items():
        try:
            output, _ = process.communicate(timeout=max(0.0, ends_at - time.monotonic()))
            answers[place] = output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            answers[place] = failed(f"{TOOL} did not end within {ALLOWED_S:g} s")
    return answers


def parse_settings(text: str, names: Iterable[str]) -> ReadingTree:
    """Return the readings of these settings from what `mstconfig -e query` printed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    start = next((number for number, line in enumerate(lines) if line.startswith(HEADING)), None)
    refusals = [line.removeprefix("-E-").strip() for line in lines if line.startswith("-E-")]
    rows = {}
    if start is not None:
        places = {key: lines[start].find(title) for title, key in COLUMNS.items()}
        columns = sorted((key for key, place in places.items() if place >= 0), key=lambda key: places[key])
        rows = dict(_read_rows(lines[start + 1 :], columns))
    if not rows:
        reason = refusals[0] if refusals else f"cannot make sense of {text.strip()[:80]!r}"
        return failed(f"{TOOL}: {reason}")
    missing = failed(f"{TOOL}: {refusals[0]}") if refusals else unsupported("the adapter has no such setting")
    return {name: _read_setting(rows[name]) if name in rows else missing for name in names}


def _read_rows(lines: Iterable[str], columns: Sequence[str]) -> Iterable[tuple[str, Row]]:
    for line in lines:
        words = line.split()
        if words[0] in MARKS:
            words = words[1:]
        if len(words) == len(columns) + 1:
            yield words[0], dict(zip(columns, words[1:], strict=True))


def _read_setting(row: Row) -> ReadingTree:
    return {
        "current": _read_cell(row, "current", "the firmware does not say which value is in force"),
        "next_boot": _read_cell(row, "next_boot", "the firmware does not say which value comes next"),
    }


def _read_cell(row: Row, column: str, otherwise: str) -> ReadingTree:
    cell = row.get(column, NO_VALUE)
    return unsupported(otherwise) if cell == NO_VALUE else value(cell)
