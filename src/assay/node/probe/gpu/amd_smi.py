"""Reads AMD's GPUs through the JSON of amd-smi, or of rocm-smi where only that is installed.

The branch is that of NVML (gpu_list.py), so a check of temperatures or memory errors holds for both vendors; what AMD
has besides is `bad_pages` and `ecc.volatile.deferred`. GPUs are named by PCI address. amd-smi of ROCm 6 prints a list,
that of ROCm 7 puts it below `gpu_data`; a field is a number, or one with its unit, or "N/A".
Sources: ROCm/amdsmi, docs/how-to/amdsmi-cli-tool.md and amdsmi_cli; ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import run_tool

DRIVER = "/sys/module/amdgpu"
TOOL_S = 5.5
QUESTIONS = ("static", "metric", "bad-pages")
ROCM_WORDS = ("--showbus", "--showproductname", "--showserial", "--showtemp", "--showpower", "--showmaxpower")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
MIB = 2**20
Places = Mapping[str, tuple[str, ...]]
IDENTITY: Places = {
    "name": ("static", "asic", "market_name"),
    "serial": ("static", "asic", "asic_serial"),
    "vbios": ("static", "vbios", "version"),
}
NUMBERS: Mapping[str, Places] = {
    "temperature": {
        "gpu_c": ("metric", "temperature", "hotspot"),
        "memory_c": ("metric", "temperature", "mem"),
        "slowdown_c": ("static", "limit", "slowdown_hotspot_temperature"),
    },
    "power": {"draw_w": ("metric", "power", "socket_power"), "max_w": ("static", "limit", "max_power")},
    "pcie": {"width": ("metric", "pcie", "width"), "replays": ("metric", "pcie", "replay_count")},
}
ERRORS = {"corrected": "correctable", "uncorrected": "uncorrectable", "deferred": "deferred"}
ROCM_NUMBERS: Mapping[str, Mapping[str, str]] = {
    "temperature": {"gpu_c": "Temperature (Sensor junction) (C)", "memory_c": "Temperature (Sensor memory) (C)"},
    "power": {"draw_w": "Current Socket Graphics Package Power (W)", "max_w": "Max Graphics Package Power (W)"},
}


def read_amd_gpus() -> ReadingTree:
    """Return the `gpu` branch by amd-smi, or else by rocm-smi."""
    from concurrent.futures import ThreadPoolExecutor  # only a node with AMD's driver pays for it

    def ask(question: str) -> ReadingTree:
        return run_tool(["amd-smi", question, "--json"], TOOL_S, value)

    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        answers = dict(zip(QUESTIONS, pool.map(ask, QUESTIONS), strict=True))
    if "absent" not in answers["static"]:
        return build_branch(answers)
    answer = run_tool(["rocm-smi", *ROCM_WORDS, "--json"], TOOL_S, parse_rocm_smi)
    return absent("neither amd-smi nor rocm-smi is installed; install amd-smi-lib") if "absent" in answer else answer


def build_branch(answers: Mapping[str, ReadingTree]) -> ReadingTree:
    """Return the branch of what amd-smi answered, as text, to each question."""
    if "value" not in answers["static"]:
        return answers["static"]
    static = _list_gpus(answers["static"]["value"])
    if not static:
        return failed(f"amd-smi static named no GPU; it said {answers['static']['value'].strip()[:80]!r}")
    answered = {name: _list_gpus(leaf["value"]) if "value" in leaf else leaf for name, leaf in answers.items()}
    devices = {_find(gpu, "bus", "bdf").lower(): _device(number, answered) for number, gpu in static.items()}
    version = {_find(gpu, "driver", "version") for gpu in static.values()}
    driver = value(min(version)) if len(version) == 1 else failed(f"amd-smi names several drivers: {sorted(version)}")
    return {"source": value("amd-smi"), "driver": driver, "count": value(len(static)), "devices": devices}


def _list_gpus(text: str) -> Mapping[int, Any]:
    """Return what amd-smi says of each GPU, by its number; nothing where its output makes no sense."""
    start = min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=0)
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        return {}
    rows = document.get("gpu_data") if isinstance(document, dict) else document
    return {row["gpu"]: row for row in rows or [] if isinstance(row, dict) and isinstance(row.get("gpu"), int)}


def _device(number: int, answered: Mapping[str, Any]) -> ReadingTree:
    def ask(place: tuple[str, ...], understand: Callable[[str, Any], ReadingTree]) -> ReadingTree:
        question, *path = place
        answer = answered[question]
        if "failed" in answer:
            leaf: ReadingTree = answer
            return leaf
        return understand(f"amd-smi {question} has no {'.'.join(path)}", _find_field(answer.get(number), path))

    counts = {name: ask(("metric", "ecc", f"total_{theirs}_count"), _read_number) for name, theirs in ERRORS.items()}
    return {
        "index": value(number),
        **{name: ask(place, _read_text) for name, place in IDENTITY.items()},
        **{branch: {name: ask(place, _read_number) for name, place in of.items()} for branch, of in NUMBERS.items()},
        "ecc": {"volatile": counts},
        "bad_pages": ask(("bad-pages", "retired"), _count_pages),
        "memory": {"total_bytes": ask(("static", "vram", "size"), _read_mib)},
    }


def _find_field(row: Any, path: Any) -> Any:
    for name in path:
        row = row.get(name) if isinstance(row, Mapping) else None
    return row


def _find(row: Any, *path: str) -> str:
    return str(_find_field(row, path) or "unknown")


def _read_text(missing: str, field: Any) -> ReadingTree:
    return absent(missing) if field in (None, "", "N/A") else value(str(field))


def _read_number(missing: str, field: Any) -> ReadingTree:
    """Return a number that stands alone, with its unit beside it, or with its unit behind it."""
    field = field.get("value") if isinstance(field, Mapping) else field
    if field in (None, "", "N/A"):
        return absent(missing)
    number = NUMBER.match(str(field))
    if number is None:
        return failed(f"{missing}: cannot make sense of {str(field)[:40]!r}")
    return value(float(number[0]) if number[1] else int(number[0]))


def _read_mib(missing: str, field: Any) -> ReadingTree:
    leaf = _read_number(missing, field)
    return value(leaf["value"] * MIB) if "value" in leaf else leaf


def _count_pages(missing: str, field: Any) -> ReadingTree:
    """Count bad pages: a list of them, or the sentence that there are none."""
    if isinstance(field, str) and field.lower().startswith("no bad pages"):
        return value(0)
    return value(len(field)) if isinstance(field, list) else absent(missing)


def parse_rocm_smi(text: str) -> ReadingTree:
    """Parse `rocm-smi --json`: it has no counters of memory errors, and its names have units in them."""
    start = text.find("{")
    try:
        document, _ = json.JSONDecoder().raw_decode(text[max(start, 0) :])
    except (ValueError, RecursionError):
        return failed(f"rocm-smi gave no JSON; it said {text.strip()[:80]!r}")
    cards = {name: card for name, card in document.items() if name.startswith("card") and isinstance(card, dict)}
    devices = {
        _find(card, "PCI Bus").lower(): {
            "name": _read_text("rocm-smi has no Card Series", card.get("Card Series", card.get("Card series"))),
            "serial": _read_text("rocm-smi has no Serial Number", card.get("Serial Number")),
            **{
                branch: {
                    name: _read_number(f"rocm-smi has no {theirs}", card.get(theirs)) for name, theirs in of.items()
                }
                for branch, of in ROCM_NUMBERS.items()
            },
            "ecc": absent("rocm-smi gives no counters of memory errors; install amd-smi-lib"),
            "bad_pages": absent("rocm-smi gives no bad pages as JSON; install amd-smi-lib"),
        }
        for card in cards.values()
    }
    return {
        "source": value("rocm-smi"),
        "count": value(len(cards)),
        "devices": devices or absent("rocm-smi lists no card"),
    }
