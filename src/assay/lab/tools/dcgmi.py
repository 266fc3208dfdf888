"""`dcgmi diag -r LEVEL -j` and `dcgmi mndiag -j` on a virtual node, in the form of DCGM 4.

It ends with 226 if a test failed, as the real one does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from assay.lab.tools.state_reader import State, load_node_state, print_lines, working_gpus

LEVEL_OF_TEST = {
    "software": 1,
    "memory": 2,
    "pcie": 2,
    "diagnostic": 3,
    "nvbandwidth": 3,
    "eud": 3,
    "memory_bandwidth": 3,
    "targeted_stress": 3,
    "targeted_power": 3,
    "memtest": 4,
    "pulse_test": 4,
}
CATEGORIES = {"software": "Deployment", "pcie": "Integration"}
SKIPPED = ("eud",)  # a package of its own
FAILED_TEST, NO_TEST = 226, 198
VERSION = "4.5.2"


def make_diagnosis(state: State, level: int) -> dict[str, Any]:
    """Return the document of one level."""
    tests = [_test(state, name) for name, first in LEVEL_OF_TEST.items() if first <= level]
    categories = [{"category": CATEGORIES.get(test["name"], "Hardware"), "tests": [test]} for test in tests]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entities": list(_entities(state)), "entity_group": "GPU", "entity_group_id": 1}],
        "metadata": {"Driver Version Detected": state["driver"], "version": VERSION},
    }


def make_rack_diagnosis(state: State) -> dict[str, Any]:
    """Return the document of `mndiag`, with the results of this node. The title is below the key that DCGM 4 uses."""
    test = _test(state, "mnubergemm")
    test["results"] = [{**result, "host_id": 0} for result in test["results"]]
    host = {"host_id": 0, "hostname": state["name"], "dcgm_version": VERSION, "driver_version": state["driver"]}
    return {
        "DCGM Diagnostic": "DCGM Multi-Node Diagnostic",
        "metadata": {"num_hosts": 1, "num_entities": len(test["results"])},
        "hosts": [{**host, "num_entities": len(test["results"]), "entities": list(_entities(state))}],
        "test_categories": [{"category": "Stress", "tests": [{**test, "status": test["test_summary"]["status"]}]}],
    }


def _entities(state: State) -> Iterator[dict[str, Any]]:
    for index, gpu in enumerate(working_gpus(state)):
        group = {"entity_group": "GPU", "entity_group_id": 1}
        yield {**group, "device_id": "2330", "entity_id": index, "serial_num": gpu["serial"]}


def _test(state: State, name: str) -> dict[str, Any]:
    found: Mapping[str, Mapping[str, str]] = state["load"]["diagnosis"]
    results = []
    for index, gpu in enumerate(working_gpus(state)):
        fault = found.get(str(gpu["index"]), {}).get(name)
        warnings = [{"error_category": 4, "error_id": 40, "error_severity": 3, "warning": fault}]
        status = "Fail" if fault else "Skip" if name in SKIPPED else "Pass"
        result = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": index, "status": status}
        results.append({**result, "warnings": warnings} if fault else result)
    worst = next((word for word in ("Fail", "Skip") if any(one["status"] == word for one in results)), "Pass")
    return {"name": name, "results": results, "test_summary": {"status": worst}}


def main() -> None:
    """Print the document that the words ask for."""
    words, state = sys.argv[1:], load_node_state()
    if words[:1] == ["mndiag"]:
        document = make_rack_diagnosis(state)
    elif words[:1] == ["diag"] and words[words.index("-r") + 1] in ("1", "2", "3", "4"):
        document = make_diagnosis(state, int(words[words.index("-r") + 1]))
    else:
        sys.exit(NO_TEST)
    text = json.dumps(document, indent=1)
    print_lines([text])
    sys.exit(FAILED_TEST if '"Fail"' in text else 0)


if __name__ == "__main__":
    main()
