"""fio proves drives and shared storage: it writes a file with checksums, and compares what it reads back.

It measures the speed of the storage, and of every drive.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.tool_call import (
    LoadOrder,
    ToolOutput,
    call_tool,
    parse_number,
    parse_object,
    read_list,
    read_speed,
)
from assay.node.probe.devices.nvme import NVME_CLASS, list_namespaces
from assay.node.probe.host import MOUNTS, ON_DISKS, list_mounts
from assay.node.probe.node_access import NodeRoot, leaf_for_error

FILE_SIZE = "1G"
MISCOMPARE = 84  # EILSEQ, which fio's verify ends with
NVME_READ_S = 5
IN_MEMORY = {"overlay", "ramfs", "rootfs", "tmpfs"}


def run_fio_verify(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Write a new file in the site's scratch folder, verify it, and delete it. It goes around the page cache."""
    return _verify_in(root, order.site.scratch, order, parse_fio_verify)


def run_shared_storage(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Do the same on the storage that the nodes share. In a burn-in, all nodes under test do so at the same time.

    A folder on the node's own drives, as where nothing is mounted, proves nothing of the storage.
    """
    if not order.site.storage:
        return absent("the inventory declares no shared storage (load_tools.storage)")
    try:
        mounts = list(list_mounts(root.read_text(MOUNTS)))
    except OSError as error:
        return leaf_for_error(MOUNTS, error)
    above = [mount for mount in mounts if f"{order.site.storage}/".startswith(f"{mount.point.rstrip('/')}/")]
    mount = max(reversed(above), key=lambda mount: len(mount.point), default=None)
    if mount is None or mount.type in ON_DISKS | IN_MEMORY:
        return failed(f"{order.site.storage} is not on shared storage, but on {mount.type if mount else 'no mount'}")
    return _verify_in(root, order.site.storage, order, parse_shared_storage)


def _verify_in(root: NodeRoot, place: str, order: LoadOrder, parse: Callable[[ToolOutput], ReadingTree]) -> ReadingTree:
    try:
        with tempfile.TemporaryDirectory(prefix="assay-fio-", dir=root.local_path(place)) as folder:
            return call_tool(build_verify_command(f"{folder}/scratch", FILE_SIZE), order, parse)
    except OSError as error:
        return failed(f"{place}: {error.strerror or error}")


def parse_shared_storage(output: ToolOutput) -> ReadingTree:
    """Parse the job as of `fio_verify`, and how fast it wrote and read: `write_mb_s`, `read_mb_s`."""
    leaf = parse_fio_verify(output)
    if leaf.get("intact") != value(True):
        return leaf
    (job, *_) = read_list(parse_object(output.stdout), "jobs")
    ways = {way: job.get(way) for way in ("write", "read")}
    speeds = {way: part.get("bw_bytes") if isinstance(part, dict) else None for way, part in ways.items()}
    return {**leaf, **{f"{way}_mb_s": read_speed(speed, 1e-6) for way, speed in speeds.items()}}


def build_verify_command(path: str, size: str, *, is_written: bool = False, direct: bool = True) -> list[str]:
    """Return fio's command. A file that `is_written` is only read; without that, fio would create and fill it."""
    job = ["fio", "--name=verify", f"--filename={path}", f"--size={size}", "--bs=1M", "--ioengine=psync"]
    how = ["--rw=write", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--verify_state_save=0"]
    how.append(f"--direct={int(direct)}")
    only = ["--verify_only", "--allow_file_create=0"] if is_written else []
    return [*job, *how, *only, "--output-format=json"]


def parse_fio_verify(output: ToolOutput) -> ReadingTree:
    """Parse the job: whether what was read back is `intact`, and how much of it was read, `verified_mb`."""
    try:
        (job, *_) = read_list(parse_object(output.stdout), "jobs")
    except ValueError:
        return output.fail(f"fio printed no result; exit code {output.exit_code}")
    read = job.get("read")
    error = job.get("error")
    if error == MISCOMPARE:
        return {"intact": value(False)}
    if error != 0 or isinstance(error, bool) or output.exit_code:
        return output.fail(f"fio could not verify: error {error}, exit code {output.exit_code}")
    size = parse_number(read.get("io_bytes")) if isinstance(read, dict) else None
    if not size or size <= 0:
        return failed("fio verified nothing")
    return {"intact": value(True), "verified_gb": value(round(size / 1e9, 3))}


def run_nvme_read(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Read each drive for at most `NVME_READ_S`. `--readonly` keeps fio from ever writing to one."""
    try:
        drives = root.list_names(NVME_CLASS)
    except OSError as error:
        return leaf_for_error(NVME_CLASS, error)
    each = LoadOrder(min(order.seconds, NVME_READ_S), order.env)
    return {"drives": {drive: _read_drive(root, drive, each) for drive in drives}}


def _read_drive(root: NodeRoot, drive: str, order: LoadOrder) -> ReadingTree:
    try:
        (namespace, *_) = list_namespaces(root, drive)
    except (OSError, ValueError):
        return absent(f"{NVME_CLASS}/{drive} has no namespace")
    job = [f"--name={drive}", f"--filename=/dev/{namespace}", "--readonly", "--rw=read", "--bs=1M"]
    how = ["--ioengine=libaio", "--iodepth=32", "--direct=1", f"--runtime={order.seconds}", "--time_based"]
    arguments = [*job, *how, "--output-format=json"]
    return call_tool(["fio", *arguments], order, lambda output: {"mb_s": parse_fio_read(output)})


def parse_fio_read(output: ToolOutput) -> ReadingTree:
    """Parse `fio --output-format=json` of one read job: MB/s (10^6 bytes). Warnings before the JSON are skipped."""
    try:
        (job, *_) = read_list(parse_object(output.stdout), "jobs")
        error, bytes_per_s = int(job["error"]), float(job["read"]["bw_bytes"])
    except (ValueError, KeyError, TypeError):
        return output.fail(f"fio printed no result; exit code {output.exit_code}")
    if error or output.exit_code:
        return output.fail(f"fio could not read: error {error}, exit code {output.exit_code}")
    return value(round(bytes_per_s / 1e6, 1)) if bytes_per_s > 0 else failed("fio read nothing")
