"""Which memories stand before a reply: all that nothing above them tells, and the newest."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.store.reply_view import Wanted, read_layers

DAYS = [(date(2026, 11, 1) + timedelta(days=n)).isoformat() for n in range(20)]
MONTHS = [f"2026-{n:02d}" for n in range(1, 12)]
WANTED = Wanted(keep_days=7, keep_months=2, activities=0, history=0)
TABLES = """
CREATE TABLE nianlun_memory (
    id INTEGER PRIMARY KEY, chat_id, kind, period, text DEFAULT 't', key_messages DEFAULT '[]',
    sources DEFAULT '[]', version DEFAULT 1, writer DEFAULT 'model',
    written_at DEFAULT '2026-11-29 20:00:00+00:00', closed DEFAULT 1, merged, stale);
CREATE TABLE nianlun_activity (
    chat_id, number, date, text, key_messages, origin, time, writer, written_at, from_seq, to_seq,
    owner, version, merged, stale);
"""


@dataclass(frozen=True)
class State:
    kind: str
    period: str
    merged: bool = False
    stale: bool = False


def shown(states: list[State], wanted: Wanted = WANTED) -> dict[str, list[str]]:
    """The periods that are read of a chat with these memories, beside one with all the others."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        connection.executemany(
            "INSERT INTO nianlun_memory (chat_id, kind, period, merged, stale)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (chat, one.kind, one.period, one.merged, one.stale)
                for one in states
                for chat in (1, 2)
            ],
        )
        layers = read_layers(connection, 1, wanted)
    found = {"day": layers.days, "month": layers.months, "year": layers.years}
    return {kind: [one.period for one in memories] for kind, memories in found.items()}


def test_the_newest_days_and_those_that_no_month_holds() -> None:
    folded = [State("day", period, merged=period not in DAYS[3:5]) for period in DAYS]
    assert shown(folded)["day"] == [*DAYS[3:5], *DAYS[-7:]]


def test_the_newest_months_and_those_that_no_year_holds() -> None:
    folded = [State("month", period, merged=period != MONTHS[0]) for period in MONTHS]
    assert shown(folded)["month"] == [MONTHS[0], *MONTHS[-2:]]


def test_all_years() -> None:
    years = [State("year", str(year), merged=True) for year in range(2020, 2026)]
    assert shown(years)["year"] == [str(year) for year in range(2020, 2026)]


def test_what_is_being_rewritten_is_never_shown_and_takes_no_place() -> None:
    states = [State("day", p, merged=True, stale=p == DAYS[-1]) for p in DAYS]
    states.append(State("month", "2026-11", stale=True))
    states.append(State("year", "2026", stale=True))
    assert shown(states) == {"day": DAYS[-8:-1], "month": [], "year": []}


STATES = st.lists(
    st.builds(
        State,
        kind=st.sampled_from(["day", "month", "year"]),
        period=st.sampled_from(DAYS),
        merged=st.booleans(),
        stale=st.booleans(),
    ),
    unique_by=lambda state: (state.kind, state.period),
    max_size=40,
)


@given(STATES, st.integers(1, 9), st.integers(1, 4))
def test_nothing_that_no_upper_layer_holds_is_left_out(
    states: list[State], keep_days: int, keep_months: int
) -> None:
    found = shown(states, Wanted(keep_days, keep_months, 0, 0))
    for state in states:
        is_shown = state.period in found[state.kind]
        if state.stale:
            assert not is_shown
        elif state.kind == "year" or not state.merged:
            assert is_shown
    for kind, keep in {"day": keep_days, "month": keep_months}.items():
        usable = sorted(s.period for s in states if s.kind == kind and not s.stale)
        assert found[kind] == sorted(found[kind])
        assert set(usable[-keep:]) <= set(found[kind])
        folded = {s.period for s in states if s.kind == kind and s.merged}
        assert len(set(found[kind]) & folded) <= keep
