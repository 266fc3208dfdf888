"""Where the policy asks for signed commits, a commit that nobody trusted signed is not acted on.

Real git, real keys. They come from Debian: `make system` (as root) installs git, gpg and openssh-client.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.model.errors import AssayError
from tests.support.forked_assay import run_assay
from tests.support.signed_fleet import ASKS, ASKS_WITH_FORGE, Forge, SignedFleet


@pytest.fixture(scope="module")
def accepted_fleet(tmp_path_factory: pytest.TempPathFactory) -> SignedFleet:
    """A fleet whose first commit is signed by alice and was accepted; each test has a copy."""
    home = tmp_path_factory.mktemp("accepted")
    (home / "keys").mkdir()
    fleet = SignedFleet(home / "fleet", home / "keys")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        fleet.lay_out()
        fleet.commit("alice")
        fleet.accept()
    return fleet


@pytest.fixture
def fleet(accepted_fleet: SignedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SignedFleet:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    shutil.copytree(accepted_fleet.root.parent, tmp_path, dirs_exist_ok=True)
    return SignedFleet(tmp_path / "fleet", tmp_path / "keys", accepted_fleet.told.copy())


def refused(fleet: SignedFleet) -> str:
    """Return why the gate stays shut, which changes nothing in the ledger."""
    before = fleet.accepted()
    with pytest.raises(AssayError) as trouble:
        fleet.accept()
    assert fleet.accepted() == before
    return str(trouble.value)


def test_the_first_signed_commit_is_accepted_on_its_own_word_and_that_is_said(fleet: SignedFleet) -> None:
    assert [signer for _, signer in fleet.accepted()] == ["alice@example.org"]
    assert "first use" in fleet.told[0]
    assert "alice@example.org" in fleet.told[0]


def test_each_later_commit_is_held_to_the_signers_of_the_last_accepted_one(fleet: SignedFleet) -> None:
    fleet.write("specs/allowed_signers", fleet.signer("alice") + fleet.signer("bob"))
    first = fleet.commit("alice")
    fleet.accept()
    second = fleet.commit("bob")
    fleet.accept()
    assert fleet.accepted()[1:] == [(first, "alice@example.org"), (second, "bob@example.org")]
    assert len(fleet.told) == 1


def test_a_commit_that_was_accepted_is_not_asked_again(fleet: SignedFleet) -> None:
    fleet.accept()
    assert len(fleet.accepted()) == 1


def test_an_unsigned_commit_is_refused_and_the_last_good_one_named(fleet: SignedFleet) -> None:
    (good, _), bad = fleet.accepted()[0], fleet.commit()
    said = refused(fleet)
    assert bad[:12] in said
    assert "it is not signed" in said
    assert f"the fleet stays on the last good commit, {good[:12]}" in said


def test_a_signature_by_a_stranger_is_refused_with_the_strangers_key(fleet: SignedFleet) -> None:
    fleet.commit("mallory")
    said = refused(fleet)
    assert "does not allow" in said
    assert "SHA256:" in said


@pytest.mark.parametrize("by", ["", "mallory"])
def test_a_commit_cannot_switch_the_question_off_for_itself(fleet: SignedFleet, by: str) -> None:
    fleet.write("specs/policy.yaml", fleet.text("specs/policy.yaml").replace(ASKS, ""))
    fleet.commit(by)
    assert "is not acted on" in refused(fleet)


def test_a_commit_cannot_bring_its_own_signer(fleet: SignedFleet) -> None:
    fleet.write("specs/allowed_signers", fleet.signer("alice") + fleet.signer("mallory"))
    fleet.commit("mallory")
    assert "does not allow" in refused(fleet)


def test_a_commit_cannot_point_to_other_signers(fleet: SignedFleet) -> None:
    fleet.write("specs/others", fleet.signer("mallory"))
    asks = "commits: {signed: true, allowed_signers: specs/others}\n"
    fleet.write("specs/policy.yaml", fleet.text("specs/policy.yaml").replace(ASKS, asks))
    fleet.commit("mallory")
    assert "does not allow" in refused(fleet)


def test_who_is_trusted_may_switch_the_question_off(fleet: SignedFleet) -> None:
    fleet.write("specs/policy.yaml", fleet.text("specs/policy.yaml").replace(ASKS, ""))
    fleet.commit("alice")
    fleet.accept()
    fleet.commit()
    fleet.accept()
    assert len(fleet.accepted()) == 2


def test_a_commit_that_was_changed_after_it_was_signed_is_refused(fleet: SignedFleet) -> None:
    fleet.write("specs/bundle.yaml", fleet.text("specs/bundle.yaml") + "# changed\n")
    signed = fleet.git("cat-file", "commit", fleet.commit("alice"))
    assert "change\n" in signed
    forged = fleet.keys / "forged"
    forged.write_text(signed.replace("\nchange\n", "\nanother change\n"))
    fleet.git("reset", "--quiet", "--hard", fleet.git("hash-object", "-w", "-t", "commit", str(forged)).strip())
    assert "does not fit its content" in refused(fleet)


def test_a_replacement_object_does_not_lend_its_signature(fleet: SignedFleet) -> None:
    good, bad = fleet.accepted()[0][0], fleet.commit()
    fleet.git("replace", bad, fleet.commit("alice"))
    fleet.git("reset", "--quiet", "--hard", bad)
    assert good[:12] in refused(fleet)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpg.ssh.program", "/bin/true"),
        ("gpg.program", "/bin/true"),
        ("gpg.minTrustLevel", "undefined"),
        ("gpg.format", "openpgp"),
        ("gpg.ssh.allowedSignersFile", "specs/allowed_signers"),
    ],
)
def test_no_configuration_of_the_repository_weakens_the_check(fleet: SignedFleet, name: str, value: str) -> None:
    fleet.write("specs/allowed_signers", fleet.signer("mallory"))
    fleet.commit("mallory")
    fleet.git("config", name, value)
    assert "does not allow" in refused(fleet)


@pytest.mark.parametrize("name", ["inventory/more.yml", "suites/test_more.py", "playbooks/reboot.yml", "ansible.cfg"])
def test_what_is_not_committed_is_refused(fleet: SignedFleet, name: str) -> None:
    (fleet.root / "playbooks").mkdir(exist_ok=True)
    fleet.write(name, "# new\n" if name.endswith(".py") else "")
    assert f"{name} is not as committed" in refused(fleet)


def test_what_git_was_told_to_overlook_is_refused_as_well(fleet: SignedFleet) -> None:
    fleet.git("config", "status.showUntrackedFiles", "no")
    (fleet.root / ".git/info/exclude").write_text("sly.yaml\n")
    fleet.write("specs/sly.yaml", fleet.text("specs/node.yaml").replace("name: small", "name: sly"))
    assert "specs/sly.yaml is not as committed" in refused(fleet)
    (fleet.root / "specs/sly.yaml").unlink()
    fleet.git("update-index", "--assume-unchanged", "specs/bundle.yaml")
    fleet.write("specs/bundle.yaml", fleet.text("specs/bundle.yaml") + "# sly\n")
    assert "specs/bundle.yaml is not as committed" in refused(fleet)


def test_what_python_and_pytest_leave_behind_does_not_count(fleet: SignedFleet) -> None:
    (fleet.root / "suites/__pycache__").mkdir()
    fleet.write("suites/__pycache__/test_heat.cpython-311.pyc", "x")
    fleet.accept()


def test_an_old_commit_does_not_bring_back_a_key_that_was_taken_out(fleet: SignedFleet) -> None:
    fleet.write("specs/allowed_signers", fleet.signer("alice") + fleet.signer("lost"))
    old = fleet.commit("alice")
    fleet.accept()
    fleet.write("specs/allowed_signers", fleet.signer("alice"))
    fleet.commit("alice")
    fleet.accept()
    fleet.git("reset", "--quiet", "--hard", old)
    assert "is not part of its history" in refused(fleet)


def test_a_key_counts_only_within_its_time(fleet: SignedFleet) -> None:
    line = fleet.signer("alice") + fleet.signer("bob", 'valid-before="20260101Z"')
    fleet.write("specs/allowed_signers", line)
    fleet.commit("alice")
    fleet.accept()
    fleet.commit("bob", at="2026-02-01T12:00:00Z")
    assert "does not allow at the time of the commit" in refused(fleet)


def test_a_date_in_a_commit_does_not_bring_back_a_key_whose_time_is_over(fleet: SignedFleet) -> None:
    line = fleet.signer("alice") + fleet.signer("bob", 'valid-before="20260101Z"')
    fleet.write("specs/allowed_signers", line)
    fleet.commit("alice")
    fleet.accept()
    fleet.commit("bob", at="2025-12-01T12:00:00Z")
    assert "allows the key of bob@example.org at the date in the commit, but not now" in refused(fleet)


def test_an_unsigned_commit_beneath_a_signed_one_is_refused_and_named(fleet: SignedFleet) -> None:
    fleet.write("specs/note.txt", "90 percent")
    beneath = fleet.commit()
    fleet.commit("alice")
    assert f"of commit {beneath[:12]}, on which it builds: it is not signed" in refused(fleet)


@pytest.mark.parametrize("file", ["info/grafts", "shallow"])
def test_no_file_of_git_hides_an_unsigned_commit(fleet: SignedFleet, file: str) -> None:
    fleet.write("specs/note.txt", "90 percent")
    accepted = fleet.accepted()[0][0]
    unsigned = fleet.commit()
    signed = fleet.commit("alice")
    fleet.git("reset", "--quiet", "--hard", accepted)
    fleet.merge(signed, "alice")
    hidden = f"{signed} {accepted}\n" if file == "info/grafts" else f"{signed}\n"
    (fleet.root / ".git" / file).parent.mkdir(exist_ok=True)
    (fleet.root / ".git" / file).write_text(hidden)
    assert unsigned not in fleet.git("rev-list", "HEAD"), "git itself is deceived"
    said = refused(fleet)
    assert f"of commit {unsigned[:12]}" in said or f"git hides commits before {signed[:12]}" in said


def test_a_signer_who_was_added_since_the_accepted_commit_counts_for_what_builds_on_that(fleet: SignedFleet) -> None:
    fleet.write("specs/allowed_signers", fleet.signer("alice") + fleet.signer("bob"))
    fleet.commit("alice")
    newest = fleet.commit("bob")
    fleet.accept()
    assert fleet.accepted()[-1] == (newest, "bob@example.org")


def test_who_is_taken_out_is_out_at_once(fleet: SignedFleet) -> None:
    fleet.write("specs/allowed_signers", fleet.signer("alice") + fleet.signer("lost"))
    before = fleet.commit("alice")
    fleet.accept()
    thief = fleet.commit("lost")
    fleet.write("specs/allowed_signers", fleet.signer("alice"))
    taken_out = fleet.commit("alice")
    assert f"of commit {thief[:12]}, on which it builds: it is signed by the key" in refused(fleet)
    fleet.git("reset", "--quiet", "--hard", before)
    fleet.write("specs/allowed_signers", fleet.signer("alice"))
    fleet.commit("alice")
    fleet.accept()
    for other in (thief, taken_out):  # a branch from before, on which the key still counted
        fleet.merge(other, "alice")
        assert f"of commit {thief[:12]}, on which it builds" in refused(fleet)
        fleet.git("reset", "--quiet", "--hard", "HEAD~1")


class TestMergesOfTheForge:
    """The forge's own key counts for merges that hold nothing of their own."""

    @pytest.fixture
    def forge(self, fleet: SignedFleet) -> Iterator[Forge]:
        if shutil.which("gpg") is None:
            pytest.skip("gpg is missing: as root, `make system` installs gnupg")
        with Forge() as forge:
            fleet.write("specs/policy.yaml", fleet.text("specs/policy.yaml").replace(ASKS, ASKS_WITH_FORGE))
            fleet.write("specs/forge.asc", forge.public_keys())
            fleet.commit("alice")
            fleet.accept()
            yield forge

    def test_a_merge_of_signed_commits_is_accepted(self, fleet: SignedFleet, forge: Forge) -> None:
        merge = fleet.branch_and_merge("alice", forge)
        fleet.accept()
        assert fleet.accepted()[-1] == (merge, "Forge <forge@example.org>")

    def test_what_people_did_not_sign_comes_in_by_no_merge(self, fleet: SignedFleet, forge: Forge) -> None:
        fleet.branch_and_merge("", forge)
        assert "on which it builds: it is not signed" in refused(fleet)

    def test_a_merge_with_changes_of_its_own_is_refused(self, fleet: SignedFleet, forge: Forge) -> None:
        fleet.branch_and_merge("alice", forge, smuggled="pool_percent: 90")
        assert "its files are not what git makes of its two parents" in refused(fleet)

    def test_a_commit_that_is_no_merge_is_refused(self, fleet: SignedFleet, forge: Forge) -> None:
        forge.commit(fleet, "--allow-empty", "--message=squashed")
        assert "it is no merge of two commits" in refused(fleet)

    def test_another_key_is_refused(self, fleet: SignedFleet, forge: Forge) -> None:
        with Forge() as stranger:
            fleet.branch_and_merge("alice", stranger)
        assert "not a good one by a key in specs/forge.asc" in refused(fleet)


def test_a_gpg_signature_is_refused_in_words(fleet: SignedFleet) -> None:
    unsigned = fleet.git("cat-file", "commit", fleet.commit())
    forged = fleet.keys / "gpg"
    seal = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aGVsbG8=\n -----END PGP SIGNATURE-----\n"
    forged.write_text(unsigned.replace("\n\n", f"\n{seal}\n", 1))
    fleet.git("reset", "--quiet", "--hard", fleet.git("hash-object", "-w", "-t", "commit", str(forged)).strip())
    said = refused(fleet)
    assert "pgp signature" in said
    assert "only SSH signatures count" in said


def test_a_commit_after_which_nobody_could_sign_is_refused(fleet: SignedFleet) -> None:
    fleet.git("rm", "--quiet", "specs/allowed_signers")
    fleet.commit("alice")
    assert "no specs/allowed_signers in commit" in refused(fleet)


def test_a_last_good_commit_that_is_gone_leaves_the_gate_shut(fleet: SignedFleet) -> None:
    good = fleet.accepted()[0][0]
    fleet.git("checkout", "--quiet", "--orphan", "new")
    fleet.commit("alice")
    (fleet.root / ".git/objects" / good[:2] / good[2:]).unlink()
    assert f"git does not have the commit {good}" in refused(fleet)


def test_without_git_there_is_nothing_to_trust(fleet: SignedFleet) -> None:
    (fleet.root / ".git").rename(fleet.keys / "taken away")
    assert "is not acted on" in refused(fleet)
    (fleet.root / ".assay/ledger.sqlite").unlink()
    assert "in no git repository" in refused(fleet)


def test_without_the_program_that_checks_the_gate_stays_shut(
    fleet: SignedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.commit("alice")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "install openssh-client" in refused(fleet)


def test_a_fleet_that_does_not_ask_is_not_asked(fleet: SignedFleet) -> None:
    (fleet.root / ".assay/ledger.sqlite").unlink()
    fleet.write("specs/policy.yaml", fleet.text("specs/policy.yaml").replace(ASKS, ""))
    fleet.commit()
    fleet.accept()
    assert fleet.accepted() == []


def test_a_fleet_that_does_not_ask_may_mend_a_policy_that_was_committed_broken(fleet: SignedFleet) -> None:
    (fleet.root / ".assay/ledger.sqlite").unlink()
    whole = fleet.text("specs/policy.yaml").replace(ASKS, "")
    fleet.write("specs/policy.yaml", whole + "]\n")
    fleet.commit()
    fleet.write("specs/policy.yaml", whole)
    fleet.accept()
    assert fleet.accepted() == []


def test_a_dirty_policy_does_not_switch_the_question_off_before_the_first_use(fleet: SignedFleet) -> None:
    (fleet.root / ".assay/ledger.sqlite").unlink()
    fleet.write("specs/policy.yaml", fleet.text("specs/policy.yaml").replace(ASKS, ""))
    assert "specs/policy.yaml is not as committed" in refused(fleet)


def test_reconcile_says_so_and_does_nothing(fleet: SignedFleet) -> None:
    fleet.commit()
    before = fleet.desk().ledger.entries()
    told = run_assay("reconcile", "--once", "--fleet", fleet.root)
    assert told.returncode == 2
    assert "it is not signed" in told.stderr
    assert "Traceback" not in told.stderr
    assert fleet.desk().ledger.entries() == before
    assert not (fleet.root / ".assay/evidence").exists()
