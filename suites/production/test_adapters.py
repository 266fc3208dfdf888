"""InfiniBand adapters count few errors, and all adapters of a node are alike."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]


@pytest.mark.fault("ib.link.errors")
def test_hca_link_integrity(hca, limits, measure, since_last_pass):
    """Count since the last pass how often the link had to retransmit, and how often its buffers overran."""
    repeated = since_last_pass(hca.counters.local_link_integrity_errors)
    overrun = since_last_pass(hca.counters.excessive_buffer_overrun_errors)
    measure("link_integrity", repeated, at_most=limits.hca_link_integrity, unit="count")
    measure("buffer_overrun", overrun, at_most=limits.hca_buffer_overrun, unit="count")


@pytest.mark.fault("ib.link.errors")
def test_hca_receives_whole_packets(hca, limits, measure, since_last_pass):
    """Count the broken packets since the last pass: broken on this link, or broken before they reached it."""
    own = since_last_pass(hca.counters.port_rcv_errors)
    remote = since_last_pass(hca.counters.port_rcv_remote_physical_errors)
    measure("received_errors", own, at_most=limits.hca_received_errors, unit="count")
    measure("remote_errors", remote, at_most=limits.hca_remote_errors, unit="count")


@pytest.mark.fault("ib.sm")
def test_hca_keeps_to_its_partition(hca, limits, measure, since_last_pass):
    """Count the packets of foreign partitions since the last pass, received or sent."""
    counters, limit = hca.counters, limits.hca_constraint_errors
    measure("constraint_in", since_last_pass(counters.port_rcv_constraint_errors), at_most=limit, unit="count")
    measure("constraint_out", since_last_pass(counters.port_xmit_constraint_errors), at_most=limit, unit="count")


@pytest.mark.fault("ib.sm")
def test_hca_hears_its_subnet_manager(hca, limits, measure, since_last_pass):
    """Count the management packets that the port dropped since the last pass (VL15)."""
    dropped = since_last_pass(hca.counters.VL15_dropped)
    measure("vl15_dropped", dropped, at_most=limits.hca_vl15_dropped, unit="count")


@pytest.mark.fault("ib.congestion")
def test_hca_discards_little(hca, limits, measure, since_last_pass):
    """Count the packets that the port could not send and discarded since the last pass."""
    discarded = since_last_pass(hca.counters.port_xmit_discards)
    measure("discards", discarded, at_most=limits.hca_discards, unit="count")


@pytest.mark.fault("ib.congestion")
def test_host_keeps_up_with_its_hca(hca, limits, measure, since_last_pass):
    """Count the packets since the last pass for which the host had no buffer."""
    lacking = since_last_pass(hca.hw_counters.out_of_buffer)
    measure("out_of_buffer", lacking, at_most=limits.hca_out_of_buffer, unit="count")


@pytest.mark.fault("ib.link.errors")
def test_hca_sends_nothing_twice(hca, limits, measure, since_last_pass):
    """Count timeouts and packets out of order since the last pass: the adapter sends these packets again."""
    for counter in ("local_ack_timeout_err", "packet_seq_err"):
        lost = since_last_pass(hca.hw_counters[counter])
        measure(counter, lost, at_most=limits.hca_retransmits, unit="count")


@pytest.mark.phase("seatrial", "production")
@pytest.mark.fault("ib.sm")
def test_hca_has_an_address(hca):
    """Check that the port has an address from the subnet manager, and knows the subnet manager."""
    assert 0 < hca.lid < 0xC000, f"LID {hca.lid:#x} is no unicast address"
    assert hca.sm_lid, "the port knows no subnet manager"


@pytest.mark.phase("seatrial", "production")
@pytest.mark.fault("ib.sm")
def test_hcas_are_in_the_same_partitions(node):
    """Compare the P_Keys of the node's adapters: a rail with another key cannot take part in a job."""
    tables = {hca.slot: sorted(hca.pkeys) for hca in node.hcas}
    keys = {" ".join(keys) for keys in tables.values()}
    assert len(keys) <= 1, "; ".join(f"{slot} has {' '.join(its)}" for slot, its in tables.items())
    assert "" not in keys, "no adapter has a P_Key"


@pytest.mark.phase("zap", "production")
@pytest.mark.fault("firmware.drift")
def test_hcas_run_one_firmware(node):
    """Check that all adapters of one kind in the node run the same firmware."""
    versions = {(str(hca.board_id), str(hca.firmware)) for hca in node.hcas}
    boards = {board for board, _ in versions}
    assert len(versions) == len(boards), f"firmware differs: {', '.join(sorted(its for _, its in versions))}"


@pytest.mark.fault("host.pcie.errors")
def test_hca_pcie_errors(node, hca, limits, measure, since_last_pass):
    """Count the adapter's PCIe errors since the last pass."""
    errors = node.aer[hca.pci]
    measure("aer_fatal", since_last_pass(errors.fatal), at_most=limits.aer_fatal, unit="count")
    measure("aer_nonfatal", since_last_pass(errors.nonfatal), at_most=limits.aer_nonfatal, unit="count")
    measure("aer_correctable", since_last_pass(errors.correctable), at_most=limits.aer_correctable, unit="count")


@pytest.mark.fault("host.pcie.errors")
def test_drive_pcie_errors(node, nvme, limits, measure, since_last_pass):
    """Count the drive's PCIe errors since the last pass."""
    errors = node.aer[nvme.pci]
    measure("aer_fatal", since_last_pass(errors.fatal), at_most=limits.aer_fatal, unit="count")
    measure("aer_nonfatal", since_last_pass(errors.nonfatal), at_most=limits.aer_nonfatal, unit="count")
    measure("aer_correctable", since_last_pass(errors.correctable), at_most=limits.aer_correctable, unit="count")
