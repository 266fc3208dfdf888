"""fio on a virtual node: one read job on one drive, in the form of `--output-format=json`."""

from __future__ import annotations

import json
import sys
from typing import Any

from assay.lab.tools.state_reader import State, load_node_state, print_lines

NO_SUCH_DEVICE = 2


def make_fio_document(state: State, job: str, filename: str) -> dict[str, Any]:
    """Return the main parts of fio's JSON document for a read of `filename`, such as `/dev/nvme0n1`."""
    names = {f"/dev/{drive['name']}n1": drive for drive in state["nvme"] if drive["present"]}
    drive = names.get(filename)
    bytes_per_s = int(drive["mb_s"] * 1e6) if drive else 0
    read = {"io_bytes": 5 * bytes_per_s, "bw_bytes": bytes_per_s, "bw": bytes_per_s // 1024, "runtime": 5000}
    done = {"jobname": job, "groupid": 0, "error": 0 if drive else NO_SUCH_DEVICE, "read": read}
    return {"fio version": "fio-3.33", "jobs": [done]}


def main() -> None:
    """Print the document."""
    options = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:] if "=" in word)
    document = make_fio_document(load_node_state(), options.get("name", ""), options.get("filename", ""))
    print_lines([json.dumps(document, indent=2)])


if __name__ == "__main__":
    main()
