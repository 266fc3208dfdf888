"""ib_write_bw on a virtual node: the client writes its report; a server has nothing to say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from assay.lab.tools.state_reader import load_node_state, print_lines


def main() -> None:
    """Write the report for the adapter after `-d`."""
    words, state = sys.argv[1:], load_node_state()
    adapter = words[words.index("-d") + 1]
    known = {hca["name"]: hca for hca in state["hcas"]}
    if adapter not in known:
        sys.exit(" Unable to find the Infiniband/RoCE device")
    if known[adapter]["state"] != "ACTIVE":
        sys.exit(" Port number 1 state is Down")
    if words[-1] != "localhost":
        return
    speed = state["load"]["write_gbps"][adapter]
    results = {"MsgSize": 8388608, "n_iterations": 58891, "BW_peak": 0.0, "BW_average": speed, "MsgRate": 0.005859}
    report = {"test_info": {"test": "RDMA_Write_BW_Test", "Device": adapter, "Link_type": "IB"}, "results": results}
    options = dict(word.split("=", 1) for word in words if word.startswith("--out_json_file="))
    Path(options["--out_json_file"]).write_text(json.dumps(report, indent=0))
    print_lines(
        [" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]", f" 8388608    58891    0.00    {speed}"]
    )


if __name__ == "__main__":
    main()
