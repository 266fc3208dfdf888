"""Every page comes from the one base page, with the one stylesheet and the same way to write numbers and times."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import jinja2
import pytest

import assay
from assay.model.page import SHARED_TEMPLATES, draw_polyline, format_number, format_quantity, format_utc, render_page

SOURCE = Path(assay.__file__).parent
TEMPLATES = [path for path in SOURCE.rglob("*.html.j2") if path.name not in SHARED_TEMPLATES]
BASES = ('{% extends "base.html.j2" %}', '{% extends "frame.html.j2" %}')
LIVE_STYLE = """<link rel="stylesheet" href="{{ files['style.css'] }}">"""
MOMENT = datetime(2026, 10, 1, 14, 2, 59, tzinfo=UTC)


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Return a function that renders the text of a template in a package of its own."""

    def render(text: str, **values: object) -> str:
        package = tmp_path / f"pages_of_{tmp_path.name}"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "page.html.j2").write_text('{% extends "base.html.j2" %}' + text)
        monkeypatch.syspath_prepend(tmp_path)
        return render_page(package.name, "page.html.j2", **values)

    return render


def test_there_are_pages_and_none_has_a_style_of_its_own():
    assert len(TEMPLATES) >= 3
    for path in TEMPLATES:
        text = path.read_text()
        is_part = "<!doctype" not in text and "{% block" not in text
        assert is_part or text.startswith(BASES) or LIVE_STYLE in text, path
        assert "<style" not in text, path
        assert "color:" not in text, path
    assert {path.name for path in SOURCE.rglob("*.css")} == {"style.css", "live.css"}, (
        "live pages load both as one file"
    )


def test_a_page_is_one_document_with_the_stylesheet_inside(render):
    page = render(
        "{% block title %}T{% endblock %}{% block content %}<p>{{ count | number }}</p>{% endblock %}", count=9
    )
    assert page.startswith("<!doctype html>")
    assert page.count("<style>") == page.count("<title>T</title>") == page.count("<p>9</p>") == 1
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert "@media (max-width: 640px)" in page


def test_values_are_escaped_wherever_they_stand(render):
    text = '{% from "macros.html.j2" import trend_line %}{% block title %}{{ x }}{% endblock %}'
    page = render(text + "{% block content %}{{ x }}{{ trend_line(x, x, 1, 1) }}{% endblock %}", x='"><script>')
    assert "<script>" not in page
    assert '""' not in page


def test_a_value_that_is_not_given_is_an_error_and_no_empty_place(render):
    with pytest.raises(jinja2.UndefinedError, match="'y' is undefined"):
        render("{% block title %}{{ y }}{% endblock %}{% block content %}{% endblock %}")


def test_a_page_without_a_title_is_an_error(render):
    with pytest.raises(jinja2.TemplateError, match="title"):
        render("{% block content %}{% endblock %}")


@pytest.mark.parametrize(
    "moment",
    [MOMENT, MOMENT.astimezone(timezone(timedelta(hours=2))), MOMENT.timestamp(), "2026-10-01T16:02:59+02:00"],
)
def test_a_time_is_written_in_one_way_whatever_holds_it(moment):
    assert format_utc(moment) == "2026-10-01 14:02 UTC"


def test_no_time_is_no_date():
    assert (format_utc(None), format_utc("", "never"), format_utc(0)) == ("", "never", "1970-01-01 00:00 UTC")


def test_numbers_have_separators_and_nouns_their_plural():
    assert (format_number(16384), format_quantity(1, "node"), format_quantity(2048, "node")) == (
        "16,384",
        "1 node",
        "2,048 nodes",
    )


def test_a_line_fills_its_field_from_left_to_right_and_from_low_to_high():
    assert draw_polyline([(10, 1), (15, 3), (20, 2)], (100, 20), (10, 20), (1, 3)) == "0.0,20.0 50.0,0.0 100.0,10.0"


def test_a_line_of_one_value_stays_in_its_field():
    assert draw_polyline([(3, 5), (3, 5)], (100, 20), (3, 3), (5, 5)) == "0.0,20.0 0.0,20.0"
