"""The files for GitHub, GitLab and Compose by the schemas that these publish, as check-jsonschema brings them."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from tests.support.places import ROOT

STARTER = ROOT / "src/assay/declare/starter/own"
JUDGES = {
    "vendor.compose-spec": sorted((ROOT / "deploy").glob("compose*.yaml")),
    "vendor.github-workflows": sorted((ROOT / ".github/workflows").glob("*.yml")),
    "vendor.github-actions": sorted((STARTER / ".github/actions").glob("*/action.yml")),
    "vendor.gitlab-ci": [STARTER / ".gitlab-ci.yml"],
}


def judge(schema: str, *files: Path) -> tuple[int, str]:
    transform = ["--data-transform", "gitlab-ci"] if schema.endswith("gitlab-ci") else []
    done = CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, *transform, *map(str, files)])
    return done.exit_code, done.output


@pytest.mark.parametrize("schema", JUDGES)
def test_a_file_is_what_its_schema_says(schema: str) -> None:
    assert JUDGES[schema]
    code, said = judge(schema, *JUDGES[schema])
    assert code == 0, said


@pytest.mark.parametrize(
    ("schema", "old", "new"),
    [
        ("vendor.compose-spec", "image:", "imagee:"),
        ("vendor.github-workflows", "runs-on:", "runs-onn:"),
        ("vendor.github-actions", "using:", "usingg:"),
        ("vendor.gitlab-ci", "script:", "scriptt:"),
    ],
)
def test_a_misspelt_word_is_found(schema: str, old: str, new: str, tmp_path: Path) -> None:
    text = JUDGES[schema][0].read_text()
    assert old in text
    (tmp_path / "misspelt.yml").write_text(text.replace(old, new))
    assert judge(schema, tmp_path / "misspelt.yml")[0] == 1
