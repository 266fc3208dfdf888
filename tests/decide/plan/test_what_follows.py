"""What the policy will do at the next look about nodes that are no longer what their spec says."""

from __future__ import annotations

from assay.decide.plan.output_formats import format_plan_text


def told(made) -> set[tuple[str, str, str, str]]:
    return {(one.state, one.what, one.fault, one.to) for one in made.follows}


def test_with_the_default_policy_nodes_that_drift_wait_for_their_wave_and_ask_nobody(repository) -> None:
    made = repository.firmware("01.05.11", "01.05.12").plan()
    assert told(made) == {
        ("production", "rolls", "firmware.drift", ""),
        ("production", "tracked", "firmware.drift", ""),
        ("onboard", "ahead", "", ""),
    }
    rolling = next(one for one in made.follows if one.what == "rolls")
    assert len(rolling.nodes) == 14
    assert rolling.rule.endswith(" rollouts")
    assert "they wait for their wave, and nobody is asked meanwhile" in format_plan_text(made)


def test_drift_that_the_policy_does_not_name_asks_for_a_technician_and_moves_nobody(repository) -> None:
    repository.policy("drift: [firmware.drift, host.config.drift]", "drift: []").commit()
    made = repository.firmware("01.05.11", "01.05.12").plan()
    noted = next(one for one in made.follows if one.what == "noted")
    assert len(noted.nodes) == 14
    assert noted.rule.endswith(" for-people")
    assert "the policy asks for a technician and moves no node" in format_plan_text(made)


def test_a_policy_that_acts_on_drift_says_where_the_nodes_go(repository) -> None:
    repository.policy("firmware.drift, ", "").commit()
    made = repository.firmware("01.05.11", "01.05.12").plan()
    assert ("production", "noted", "firmware.drift", "") in told(made)  # its remedy, a ticket, is no step of the ladder
    repository.edit(
        "specs/faults/hgx.yaml",
        'remedy: ticket\n    investigate: "find out who flashed',
        'remedy: reboot\n    investigate: "find out who flashed',
    )
    repository.commit()
    made = repository.firmware("01.05.12", "01.05.13").plan()
    assert ("production", "moves", "firmware.drift", "production-reboot") in told(made)


def test_a_merged_firmware_is_no_wave_by_the_default_policy(repository) -> None:
    assert list_notes(repository.firmware("01.05.11", "01.05.12").plan()) == []


def test_the_whole_pool_that_drifts_opens_its_own_breaker_where_drift_counts(repository) -> None:
    repository.policy("drift: [firmware.drift, host.config.drift]", "drift: []").commit()
    (note,) = list_notes(repository.firmware("01.05.11", "01.05.12").plan())
    assert note.startswith("the breaker of pool h100-a will open: 14 of 14 serving nodes")


def test_a_drift_of_few_nodes_opens_no_breaker(repository) -> None:
    text = (repository.root / "specs/nodes/hgx-h100.yaml").read_text()
    other = text.replace("name: hgx-h100\n", "name: hgx-canary\n").replace("driver: 570", "driver: 580")
    (repository.root / "specs/nodes/canary.yaml").write_text(other)
    for name in ("n0004", "n0008", "n0012"):
        repository.edit("inventory/h100-a.yml", host := repository.host(name), f"{host}      node_spec: hgx-canary\n")
    made = repository.plan()
    assert list_notes(made) == []
    assert next(one for one in made.follows if one.what == "rolls").nodes == ("n0004", "n0008", "n0012")


def test_a_node_in_burn_in_fails_it_and_is_said_to(repository, known) -> None:
    made = repository.spec("driver: 570", "driver: 580").plan(known("n0005", "test", start="zap"))
    failing = next(one for one in made.follows if one.state == "test")
    assert (failing.what, failing.nodes, failing.to) == ("fails", ("n0005",), "triage")
    assert failing.rule.startswith("specs/lifecycle/default.yaml:")


def test_a_node_that_is_not_yet_flashed_takes_the_new_bundle(repository, known) -> None:
    repository.firmware("01.05.11", "01.05.12")
    made = repository.plan(known("n0005", "zap", start="seatrial"))
    assert next(one for one in made.follows if one.state == "zap").what == "ahead"


def test_a_node_that_was_just_flashed_fails_what_zap_requires(repository, known) -> None:
    repository.firmware("01.05.11", "01.05.12")
    made = repository.plan(known("n0005", "zap", start="seatrial", actions=("zap",)))
    failing = next(one for one in made.follows if one.state == "zap")
    assert (failing.what, failing.to) == ("fails", "zapfail")


def test_nodes_on_their_way_and_unmanaged_ones_are_in_no_wave(repository, known) -> None:
    made = repository.firmware("01.05.11", "01.05.12").plan(known("n0005", "draining"))
    scheduled = {name for wave in made.work.schedule.waves for name in wave.nodes}
    assert set(made.work.under_way) == {"n0001", "n0002", "n0005"}
    assert set(made.work.left_alone) == {"n0017", "n0018", "n0019", "n0020"}
    assert scheduled == {f"n{number:04}" for number in range(3, 17)} - {"n0005"}


def test_a_node_that_nobody_acts_on_is_left_alone_wherever_it_is(repository, known) -> None:
    made = repository.firmware("01.05.11", "01.05.12").plan(known("n0017", "draining"))
    assert "n0017" in made.work.left_alone
    assert "n0017" not in made.work.under_way


def test_a_rack_that_is_one_machine_is_said_to_run_mixed(repository) -> None:
    whole = "rack: {nodes: 4, gpus: 32}\nfans: 10"
    repository.spec("fans: 10", whole).commit()
    notes = list_notes(repository.firmware("01.05.11", "01.05.12").plan())
    assert notes[-1].startswith("4 racks (hgx-h100), each one machine, will run mixed over 4 waves: rack_concurrent")


def list_notes(made):
    """Return the notes, without those on examples: this repository has some, which no site has."""
    return [note for note in made.notes if "will be refused" not in note]
