"""The days that belong to a holder, and where a series begins anew."""

from __future__ import annotations

import duckdb

from assay.decide.trends.fleet_tables import LAST_DAY, make_intervals

HOUR, DAY = 3_600, 86_400
USUAL = {"serial": "S1", "sku": "h100", "firmware": "1.0", "rack": "r1", "position": "u1"}


def list_intervals(*rows: tuple[float, float | None, dict[str, str]]) -> list[tuple[int, int, int]]:
    """Return segment, first and last day of the holders of one place, who are there since and until some hour."""
    database = duckdb.connect()
    others = ("serial", "sku", "firmware", "rack", "position", "pdu", "switch", "batch", "driver")
    columns = ", ".join(f"{name} VARCHAR" for name in ("node", "subject", *others))
    database.execute(f"CREATE TABLE holders ({columns}, since_s DOUBLE, until_s DOUBLE)")
    for since, until, traits in rows:
        held = [(USUAL | traits).get(name, "") for name in others]
        times = [since * HOUR, until and until * HOUR]
        database.execute(f"INSERT INTO holders VALUES ({', '.join('?' * 13)})", ["n1", "gpu0", *held, *times])
    make_intervals(database)
    shown = database.table("intervals").order("since_s").project("segment, first_day, last_day")
    return shown.fetchall()


def test_the_day_on_which_a_holder_changes_belongs_to_nobody() -> None:
    assert list_intervals((24, 24 * 10 + 6, {}), (24 * 10 + 8, None, {"serial": "S2"})) == [
        (1, 1, 9),
        (2, 11, LAST_DAY),
    ]


def test_a_series_goes_on_through_new_firmware() -> None:
    changes = (24, 240, {}), (240, 480, {"firmware": "2.0"}), (480, None, {"firmware": "2.0", "sku": "h200"})
    assert [segment for segment, _, _ in list_intervals(*changes)] == [1, 1, 1]


def test_a_series_begins_anew_with_another_part_place_and_after_a_repair() -> None:
    changes = (
        (24, 240, {}),
        (240, 480, {}),
        (480, 600, {"serial": "S2"}),
        (600, 720, {"serial": "S2", "rack": "r2"}),
        (720, None, {"serial": "S2", "rack": "r2", "position": "u9"}),
    )
    assert [segment for segment, _, _ in list_intervals(*changes)] == [1, 2, 3, 4, 5]


def test_a_part_that_comes_back_is_a_series_of_its_own() -> None:
    changes = (24, 240, {}), (240, 480, {"serial": "S2"}), (480, None, {})
    assert [segment for segment, _, _ in list_intervals(*changes)] == [1, 2, 3]
