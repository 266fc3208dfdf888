"""What a command writes on a virtual node counts, as in a real kernel. Faults that are planted later show again."""

from __future__ import annotations

from typing import Any


def test_values_that_a_command_writes_are_in_the_state_of_the_next_command(node: Any) -> None:
    script = """
    echo 3 > $ASSAY_ROOT/proc/sys/vm/swappiness
    echo never > $ASSAY_ROOT/sys/kernel/mm/transparent_hugepage/enabled
    echo 1400 > $ASSAY_ROOT/sys/class/net/eth0/mtu
    modprobe -a brand_new
    """
    assert node.run("sh", "-c", script).returncode == 0
    seen = node.run("sh", "-c", "cat $ASSAY_ROOT/sys/kernel/mm/transparent_hugepage/enabled").stdout
    assert seen == "always madvise [never]\n"
    state = node.world.load(node.name)
    assert (state["host"]["sysctls"]["vm.swappiness"], state["nics"][0]["mtu"]) == ("3", 1400)
    assert "brand_new" in state["host"]["modules"]
    node.change(lambda state: state["host"]["sysctls"].update({"vm.swappiness": "60"}))
    assert node.run("sh", "-c", "cat $ASSAY_ROOT/proc/sys/vm/swappiness").stdout == "60\n"


def test_a_service_that_is_started_is_active_and_one_that_is_not_there_is_an_error(node: Any) -> None:
    node.change(lambda state: state["host"]["services"].update(chrony="failed"))
    assert "ActiveState=failed" in node.run("systemctl", "show", "chrony").stdout
    assert node.run("systemctl", "start", "chrony").returncode == 0
    assert "ActiveState=active" in node.run("systemctl", "show", "chrony").stdout
    assert node.world.load(node.name)["host"]["services"]["chrony"] == "active"
    assert node.run("systemctl", "start", "nowhere").returncode == 4


def test_the_boot_menu_counts_from_the_next_reset(node: Any) -> None:
    script = """
    mkdir -p $ASSAY_ROOT/etc/default/grub.d
    echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX quiet nosmt"' > $ASSAY_ROOT/etc/default/grub.d/90.cfg
    echo 'GRUB_DEFAULT="Advanced options for Ubuntu>Ubuntu, with Linux 7.1.0"' > $ASSAY_ROOT/etc/default/grub.d/91.cfg
    update-grub
    """
    done = node.run("sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "nosmt" not in node.world.load(node.name)["cmdline"]
    now = node.world.clock().now()
    from assay.lab.bmc.power_transitions import reset_node

    after = reset_node(node.world.load(node.name), "ForceRestart", now)
    assert (after["kernel"], after["cmdline"].split()[-2:]) == ("7.1.0", ["quiet", "nosmt"])
    assert after["next_boot"] == {}


def test_the_image_of_a_node_stays_on_its_command_line(node: Any) -> None:
    node.change(lambda state: state.update(cmdline="root=/dev/md0 assay.image=gpu-node:1:e0dd2be8"))
    assert node.run("update-grub").returncode == 0
    assert "assay.image=gpu-node:1:e0dd2be8" in node.world.load(node.name)["next_boot"]["cmdline"].split()
