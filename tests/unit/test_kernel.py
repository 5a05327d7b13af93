"""Words everyone shares."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.addresses import client_address
from accessportal.kernel.clock import zone_named
from accessportal.kernel.decisions import allow, refuse
from accessportal.kernel.durations import LONGEST_SECONDS, format_duration, parse_duration
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.kernel.ids import new_event_id, request_id_for
from accessportal.kernel.pages import Page, every
from accessportal.kernel.ports import after_commit, set_after_commit

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("8h", 28_800),
        ("PT8H", 28_800),
        ("2d", 172_800),
        ("2h30m", 9_000),
        (" 2 h 30 m ", 9_000),
        ("1D", 86_400),
        ("P1DT2H", 93_600),
        ("pt90s", 90),
        ("45s", 45),
        ("1.5h", 5_400),
        ("1,5 h", 5_400),
        ("1h30", 5_400),
        ("2d1h05", 176_700),
        ("8 hours", 28_800),
        ("1 hour and 30 minutes", 5_400),
        ("90 min", 5_400),
        ("1w", 604_800),
        ("2 weeks", 1_209_600),
        ("P1W", 604_800),
    ],
)
def test_durations_as_people_write_them(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "0",
        "0m",
        "-1h",
        "8",
        "h",
        "P",
        "PT",
        "1h1h",
        "30m2h",
        "1h75",
        "1h5",
        ".5h",
        "1.h",
        "٣h",
        "9" * 30 + "h",
        "8h\0",
        "until 18:00",
    ],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_duration(text, field="length")
    assert refused.value.field == "length"


_NINE_IN_BERLIN = datetime(2026, 3, 2, 9, 0, tzinfo=zone_named("Europe/Berlin"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5_400),
        ("until 18:00", 32_400),
        ("Until 18.30", 34_200),
        ("till 6pm", 32_400),
        ("until 12 am", 54_000),
        ("until tomorrow 9:00", 86_400),
        ("until 08:00", 82_800),
        ("until tomorrow at 10:00", 90_000),
    ],
)
def test_what_somebody_types_at_nine_in_their_zone(text: str, seconds: int) -> None:
    assert parse_duration(text, now=_NINE_IN_BERLIN) == seconds


@pytest.mark.parametrize("text", ["until", "until 24:00", "until 9:60", "until 13pm", "until 0 am", "18:00", "0", "9" * 10, "٩٠"])
def test_what_nobody_understands_names_what_can_be_typed(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_duration(text, now=_NINE_IN_BERLIN)
    assert refused.value.code == "duration_not_positive" or "until 18:00" in refused.value.message


@pytest.mark.parametrize("passed_seconds", [0, 1, 3_599])
def test_a_time_that_is_just_over_is_not_taken_for_that_of_tomorrow(passed_seconds: int) -> None:
    """Typed a moment before, and sent a moment after: nobody means a day more."""
    six = _NINE_IN_BERLIN.replace(hour=18)
    assert parse_duration("until 18:00", now=six - timedelta(seconds=1)) == 1

    with pytest.raises(InvalidRequest) as refused:
        parse_duration("until 18:00", field="length", now=six + timedelta(seconds=passed_seconds))

    assert (refused.value.code, refused.value.field) == ("duration_just_over", "length")
    assert "“until tomorrow 18:00”" in refused.value.message
    assert parse_duration("until tomorrow 18:00", now=six) == 86_400


def test_the_night_in_which_the_clocks_go_forward_is_shorter() -> None:
    evening = datetime(2026, 3, 28, 22, 0, tzinfo=zone_named("Europe/Berlin"))

    assert parse_duration("until 6:00", now=evening) == 7 * 3_600


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "Europe", "Europe/Ber\0lin", "x" * 1_000])
def test_a_zone_that_nobody_knows_is_utc(name: str) -> None:
    assert zone_named(name) is UTC


@pytest.mark.parametrize("text", ["3651d", "9999999d", "999999999d999999999h", "PT999999999H", "315360001s"])
def test_a_duration_that_no_clock_could_add_is_refused(text: str) -> None:
    assert parse_duration("3650d") == LONGEST_SECONDS

    with pytest.raises(InvalidRequest, match=r"at most 3650 d, and “.*” is more: write a shorter one") as refused:
        parse_duration(text, field="length")

    assert (refused.value.field, refused.value.code) == ("length", "duration_too_long")


@given(st.integers(1, LONGEST_SECONDS))
def test_what_is_shown_reads_back_as_the_same(seconds: int) -> None:
    assert parse_duration(format_duration(seconds).replace("min", "m")) == seconds


def test_the_same_form_of_the_same_person_has_one_id() -> None:
    first = request_id_for(requested_by="alice@example.com", submission_id="form")

    assert uuid.UUID(first).version == 4
    assert request_id_for(requested_by="alice@example.com", submission_id="form") == first
    assert request_id_for(requested_by="bob@example.com", submission_id="form") != first
    assert request_id_for(requested_by="alice@example.com:f", submission_id="orm") != first


def test_event_ids_sort_by_their_moment() -> None:
    ids = [new_event_id(NOW + timedelta(milliseconds=number)) for number in range(50)]

    assert ids == sorted(ids)
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert len({new_event_id(NOW) for _ in range(100)}) == 100


def test_people_are_folded_and_the_system_is_nobody() -> None:
    alice = person(" Alice@Example.com ", roles=frozenset({Role.AUDITOR}))

    assert (alice.name, alice.is_auditor, alice.is_operator, alice.is_system) == ("alice@example.com", True, False, False)
    assert system("tick").reads_everything
    assert not person("mallory@example.com").reads_everything


def test_a_decision_says_why() -> None:
    allow("You may").require()
    with pytest.raises(NotAllowed, match="You may not") as refused:
        refuse("You may not", code="no").require()
    assert refused.value.code == "no"


def test_every_page_is_read_to_the_last() -> None:
    pages = {None: Page((1, 2), "a"), "a": Page((), "b"), "b": Page((3,))}

    assert list(every(lambda cursor: pages[cursor])) == [1, 2, 3]
    assert pages[None].map(str) == Page(("1", "2"), "a")


def test_nobody_needs_to_listen_after_a_commit() -> None:
    heard: list[tuple[str, dict[str, str]]] = []
    replaced = set_after_commit(lambda name, /, **payload: heard.append((name, payload)))

    after_commit("carry_out", request_id="r")

    set_after_commit(replaced)
    assert heard == [("carry_out", {"request_id": "r"})]


@pytest.mark.parametrize(
    ("forwarded", "proxies", "sender"),
    [
        ("", 0, "10.0.0.9"),
        ("1.2.3.4", 0, "10.0.0.9"),
        ("1.2.3.4", 1, "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4", 1, "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4, 10.0.0.2", 2, "1.2.3.4"),
        ("6.6.6.6,2001:db8::1 ,10.0.0.2", 2, "2001:db8::1"),
        # It did not come by our proxies.
        ("1.2.3.4", 2, "10.0.0.9"),
        ("", 1, "10.0.0.9"),
        ("1.2.3.4, ", 1, "10.0.0.9"),
        ("x" * 100_000, 1, "x" * 64),
    ],
)
def test_a_client_s_address_is_what_our_own_proxies_told(forwarded: str, proxies: int, sender: str) -> None:
    told = {"REMOTE_ADDR": "10.0.0.9"} | ({"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {})

    assert client_address(told, trusted_proxies=proxies) == sender
