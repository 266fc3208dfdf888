"""The YAML reader: right values, exact places, and an end to everything hostile."""

from __future__ import annotations

import datetime
import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from assay.declare.repository.tree import MAX_FILE_BYTES, WorkingFolder
from assay.declare.yaml import MAX_ALIASED, MAX_DEPTH, UnreadableYaml, parse_yaml, read_yaml_file
from assay.model.errors import AssayError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
PIECES = (
    *("a", "b: ", "- ", "? ", ": ", "[", "]", "{", "}", ",", "&x ", "*x", "<<: ", "!!int ", "!vault ", "!t ", "|", ">"),
    *(
        "\n",
        "\n  ",
        '"',
        "'",
        "#",
        "%",
        "@",
        "---\n",
        "...\n",
        "1",
        "0x",
        "1e3",
        "on",
        "~",
        "\t",
        "é",
        "\\x",
        "2001-01-01",
    ),
)
FRAGMENTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@given(st.binary(max_size=400))
@example(b"\xff\xfe\x00")
@example(b"a: \x00")
@example(b"\xef\xbb\xbfa: 1")
@example(b"? {a: b}\n: c")
def test_any_bytes_give_a_document_or_trouble(content: bytes) -> None:
    trouble = _trouble_with(content)
    assert trouble is None or trouble.where.startswith("x.yaml:")


@given(FRAGMENTS)
@example('a: "\\ud800"')
@example("!!timestamp foo")
@example("a: 0x_")
@example("<<: [*x]")
@example("&x [*x]")
@example("{a: 1, a: 2}")
def test_any_text_made_of_yaml_gives_a_document_or_trouble(text: str) -> None:
    trouble = _trouble_with(text.encode())
    assert trouble is None or trouble.where.startswith("x.yaml:")


@given(PLAIN)
def test_what_yaml_writes_is_read_back_as_pyyaml_reads_it(data: object) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    assume(not re.search(r"\d[eE]", text))  # PyYAML leaves 1e3 without quotes, which we refuse
    assert parse_yaml(text.encode(), "x.yaml").data == yaml.load(text, Loader=yaml.CSafeLoader)


@given(FRAGMENTS)
def test_what_is_accepted_means_what_it_means_to_pyyaml(text: str) -> None:
    try:
        mine = parse_yaml(text.encode(), "x.yaml").data
    except AssayError:
        return
    if "!" in text or "=" in text:
        return
    assert mine == yaml.load(text, Loader=yaml.CSafeLoader)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a: 1\na: 2", 2, 1, "the key 'a' stands twice; first on line 1"),
        ("a:\n  - b: 1\n    b: 2", 3, 5, "stands twice"),
        ("a: &a [*a]", 1, 8, "contains itself"),
        ("a: *b", 1, 4, "stands before any &b"),
        ("a: !!python/name:os.system x", 1, 4, "the tag python/name:os.system is not allowed"),
        ("a: !lookup {b: c}", 1, 4, "the tag !lookup is not allowed"),
        ("a: 1\n---\nb: 2", 2, 1, "a second document"),
        ("? [a]\n: b", 1, 5, "cannot be a key"),
        ("a: 2001-99-99", 1, 4, "month must be in 1..12"),
        ("<<: 1\na: 2", 1, 1, "<< takes a mapping"),
        ("a: [1, 2\nb: 3", 2, 2, "not YAML"),
        ("version: 1e3", 1, 10, "1e3 is text to some readers of YAML and a number to others"),
        ("a: \0", 1, 1, "not YAML: unacceptable character"),
        ("a: " + "9" * 5000, 1, 4, "4300 digits"),
    ],
)
def test_each_mistake_is_named_at_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(UnreadableYaml, match=r"x\.yaml") as caught:
        parse_yaml(text.encode(), "x.yaml")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert says in caught.value.what


def test_bad_utf_8_is_named_with_its_line() -> None:
    with pytest.raises(UnreadableYaml, match="not UTF-8") as caught:
        parse_yaml(b"a: 1\nb: \xc3\x28\n", "x.yaml")
    assert caught.value.line == 2


def test_nesting_ends_at_a_limit_and_quickly() -> None:
    parse_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "x.yaml")
    for hostile in (b"[" * 200_000, b"{a: " * 200_000, b"- " * 200_000, b"? " * 200_000):
        with pytest.raises(UnreadableYaml, match="nested deeper"):
            _timed(hostile)


def test_aliases_that_explode_end_at_a_limit_and_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    with pytest.raises(UnreadableYaml, match=f"more than {MAX_ALIASED} values"):
        _timed("\n".join(lines).encode())


def test_merge_keys_that_explode_end_at_a_limit_and_quickly() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(900)) + "}"]
    lines += [f"a{i}: {{<<: *a0}}" for i in range(1, 2000)]
    with pytest.raises(UnreadableYaml, match="aliases stand for"):
        _timed("\n".join(lines).encode())


def test_too_many_values_end_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.declare.yaml.MAX_VALUES", 1000)
    parse_yaml(b"- a\n" * 999, "x.yaml")
    with pytest.raises(UnreadableYaml, match="more than 1000 values"):
        parse_yaml(b"- a\n" * 1001, "x.yaml")


def test_a_file_that_is_too_large_is_refused_without_being_parsed(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    with big.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UnreadableYaml, match="larger than 64 MiB"):
        read_yaml_file(WorkingFolder(tmp_path), "big.yaml", "big.yaml")


def test_a_file_that_is_not_there_is_trouble_too(tmp_path: Path) -> None:
    with pytest.raises(UnreadableYaml, match="cannot be read"):
        read_yaml_file(WorkingFolder(tmp_path), "none.yaml", "none.yaml")


def test_places_are_found_by_path_and_unknown_steps_are_passed_over() -> None:
    document = parse_yaml(b"a:\n  b:\n    - c: 1\n    - {d: 2, e: 3}\n", "x.yaml")
    assert document.place(("a", "b", 1, "e")) == (4, 14)
    assert document.place(("a", "b", 0, "c")) == (3, 7)
    assert document.place(("a", "nothing", "b")) == (2, 3)
    assert document.where(("a", "b", 0)) == "x.yaml:3"


def test_merge_keys_add_what_is_not_said_and_keep_the_line_it_came_from() -> None:
    document = parse_yaml(b"base: &b {x: 1, y: 2}\nother: &o {z: 5, x: 7}\nmine:\n  <<: [*b, *o]\n  y: 3\n", "x.yaml")
    assert document.data["mine"] == {"x": 1, "y": 3, "z": 5}
    assert document.place(("mine", "x")) == (1, 11)
    assert document.place(("mine", "y")) == (5, 3)


def test_scalars_mean_what_yaml_1_1_says() -> None:
    text = b"[no, 'no', 010, 0x10, 1.0e+3, 2026-11-21, ~, <<, '', 12:30, 1_000, .inf]"
    data = parse_yaml(text, "x.yaml").data
    expected = [False, "no", 8, 16, 1000.0, datetime.date(2026, 11, 21), None, "<<", "", 750, 1000, float("inf")]
    assert data == expected


def test_ansible_s_own_tags_are_plain_data() -> None:
    assert parse_yaml(b"a: !unsafe '{{ x }}'\n", "x.yaml").data == {"a": "{{ x }}"}
    assert parse_yaml(b"a: !vault |\n  $ANSIBLE_VAULT\n", "x.yaml").data == {
        "a": {"__ansible_vault": "$ANSIBLE_VAULT\n"}
    }


def test_an_empty_file_is_no_data() -> None:
    assert parse_yaml(b"", "x.yaml").data is None
    assert parse_yaml(b"# nothing\n", "x.yaml").data is None


def _timed(content: bytes) -> None:
    begun = time.process_time()
    try:
        parse_yaml(content, "x.yaml")
    finally:
        assert time.process_time() - begun < 2


def _trouble_with(content: bytes) -> AssayError | None:
    try:
        document = parse_yaml(content, "x.yaml")
    except AssayError as trouble:
        return trouble
    assert document.place() >= (1, 1)
    return None
