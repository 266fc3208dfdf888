"""fio on a virtual node, in the form of `--output-format=json`: a read of one drive, or a file written and verified."""

from __future__ import annotations

import json
import sys
from typing import Any

from assay.lab.tools.state_reader import State, load_node_state, print_lines

NO_SUCH_DEVICE, MISCOMPARE = 2, 84


def make_fio_document(state: State, job: str, filename: str) -> dict[str, Any]:
    """Return the main parts of fio's JSON document for a read of `filename`, such as `/dev/nvme0n1`."""
    names = {f"/dev/{drive['name']}n1": drive for drive in state["nvme"] if drive["present"]}
    drive = names.get(filename)
    bytes_per_s = int(drive["mb_s"] * 1e6) if drive else 0
    read = {"io_bytes": 5 * bytes_per_s, "bw_bytes": bytes_per_s, "bw": bytes_per_s // 1024, "runtime": 5000}
    done = {"jobname": job, "groupid": 0, "error": 0 if drive else NO_SUCH_DEVICE, "read": read}
    return {"fio version": "fio-3.33", "jobs": [done]}


def make_verify_document(state: State) -> dict[str, Any]:
    """Return the main parts of fio's document for a file that was written and read back."""
    error = 0 if state["load"]["intact"] else MISCOMPARE
    job = {"jobname": "verify", "error": error, "read": {"io_bytes": 2**30}, "write": {"io_bytes": 2**30}}
    return {"fio version": "fio-3.33", "jobs": [job]}


def main() -> None:
    """Print the document; exit with 1 if there is an error in it."""
    options, state = (
        dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:] if "=" in word),
        load_node_state(),
    )
    if "verify" in options:
        document = make_verify_document(state)
    else:
        document = make_fio_document(state, options.get("name", ""), options.get("filename", ""))
    print_lines([json.dumps(document, indent=2)])
    sys.exit(1 if document["jobs"][0]["error"] else 0)


if __name__ == "__main__":
    main()
