"""A report loads nothing from elsewhere: nobody is told who reads of which fleet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.tell.report.report_builder import remove_foreign_scripts

COUNTED = """<!DOCTYPE html>\r
<html><body>
<script src="app.js"></script><script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>
<script>
  gtag('js', "</not a tag>");
</script>\u2028<SCRIPT SRC='//elsewhere.example/x.js'>x()</SCRIPT><p>done</p>
"""


def test_scripts_of_other_hosts_are_taken_out_and_all_else_stays():
    assert remove_foreign_scripts(COUNTED) == (
        """<!DOCTYPE html>\r
<html><body>
<script src="app.js"></script>
<script>
  gtag('js', "</not a tag>");
</script>\u2028<p>done</p>
"""
    )


@given(st.text(alphabet=st.sampled_from(list('<>/="\n scriptxh:!-')), max_size=60))
def test_a_page_without_them_is_the_same_to_the_letter(text):
    assert remove_foreign_scripts(text) == text or "//" in text
