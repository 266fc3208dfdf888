"""Checks that cannot mean what they say, and modules that cannot be imported: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import SUITE, Case, replaced

FILE = "suites/test_heat.py"


IN_CLASSES = """class Test{}:
    @pytest.mark.phase("production")
    @pytest.mark.fault("gpu.hot")
    def test_{}(self, gpu):
        assert gpu.heat < 80


"""

CASES: dict[str, Case] = {
    "ASY0392": Case(
        replaced(FILE, SUITE, "def test_heat", "async def test_heat"),
        replaced(FILE, SUITE, "def test_heat", "async def own():\n    pass\n\n\ndef test_heat"),
        f"{FILE}:8:1",
    ),
    "ASY0393": Case(
        replaced(FILE, SUITE, "@pytest.mark.phase", "@pytest.mark.pasive\n@pytest.mark.phase"),
        replaced(FILE, SUITE, "@pytest.mark.phase", "@pytest.mark.nightly\n@pytest.mark.phase"),
        f"{FILE}:6:2",
    ),
    "ASY0395": Case(
        {FILE: SUITE + "\n\n" + IN_CLASSES.format("One", "cold") + IN_CLASSES.format("Two", "cold")},
        {FILE: SUITE + "\n\n" + IN_CLASSES.format("One", "cold") + IN_CLASSES.format("Two", "warm")},
        f"{FILE}:22:5",
    ),
    "ASY0396": Case(
        replaced(FILE, SUITE, "@pytest.mark.phase", '@pytest.mark.parametrize("n", [1, 2])\n@pytest.mark.phase'),
        {},
        f"{FILE}:6:2",
    ),
    "ASY0397": Case(
        {FILE: SUITE.replace("import pytest", "import no_such_package.part\nimport pytest")},
        {
            FILE: SUITE.replace("import pytest", "import own_module\nimport json, xml.dom\nimport pytest")
            + "\n\ntry:\n    import no_such_package\nexcept ImportError:\n    pass\n",
            "own_module.py": "",
        },
        f"{FILE}:3:1",
    ),
}
