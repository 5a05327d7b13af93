"""The pure parts: keys in addresses, context, differences, words for data."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from accessportal.access_requests.kinds.aws_account.terms import AccountTargets, AccountTerms
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.console.resources import account_pool, leases, sandboxes
from accessportal.console.rule_versions import changes_between, lines_of
from accessportal.console.templatetags.console import limits_words, until
from accessportal.kernel.pages import Page, Unreadable
from accessportal.rules.loading import read_rules
from accessportal.rules.states import Approval, Effect, People, Rule, Ticket
from accessportal.web.addresses import KeyConverter
from accessportal.web.facts import facts_of
from accessportal.web.past_requests import context_of

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@given(st.text(min_size=1).filter(lambda text: not any("\ud800" <= character <= "\udfff" for character in text)))
def test_any_key_survives_the_address_as_one_segment(key: str) -> None:
    converter = KeyConverter()

    shown = converter.to_url(key)

    assert converter.to_python(shown) == key
    assert not set(shown) & set("/#?%")


def request(request_id: str, *, status: Status, days_ago: float = 1, account: str = "1", permission_set: str = "Read") -> AccessRequest:
    asked = NOW - timedelta(days=days_ago)
    made = SimpleNamespace(
        request_id=request_id,
        kind="aws_account",
        account_id=account,
        scope=account,
        permission_set=permission_set,
        target={},
        status=status,
        requested_at=asked,
    )
    made.is_over = lambda now: False
    return cast(AccessRequest, made)


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ([], "first of its kind in 90 days"),
        ([Status.REVOKED], "1 like it in 90 days, granted"),
        ([Status.REVOKED, Status.ACTIVE, Status.REVOKED], "3 like it in 90 days, all granted"),
        ([Status.DENIED, Status.DENIED], "2 like it in 90 days, all denied"),
        (
            [Status.REVOKED, Status.DENIED, Status.PENDING, Status.LAPSED],
            "4 like it in 90 days, 1 granted, 1 denied, 1 waiting, 1 not decided",
        ),
    ],
)
def test_what_came_of_like_requests(statuses: list[Status], words: str) -> None:
    asked = request("this", status=Status.PENDING, days_ago=0)
    others = [request(str(number), status=status) for number, status in enumerate(statuses)]

    assert context_of(asked, Page((asked, *others)), now=NOW).similar == words


def test_context_is_about_the_same_thing_and_the_same_place() -> None:
    asked = request("this", status=Status.PENDING, days_ago=0)
    others = [
        request("old", status=Status.REVOKED, days_ago=91),
        request("elsewhere", status=Status.ACTIVE, account="2"),
        request("beside", status=Status.ACTIVE, permission_set="Power"),
    ]

    context = context_of(asked, Page(tuple(others)), now=NOW)

    assert context.similar == "first of its kind in 90 days"
    assert [held.request_id for held in context.holds] == ["beside"]
    assert not context.overlaps


def test_what_was_asked_later_is_not_told_as_before() -> None:
    first, *later = [request(str(days), status=Status.REVOKED, days_ago=days) for days in (95, 60, 30, 0)]
    lately = Page((*later[::-1], first))

    assert context_of(first, lately, now=NOW).similar == "first of its kind in 90 days"
    assert context_of(later[-1], lately, now=NOW).similar == "2 like it in 90 days, all granted"
    assert context_of(later[0], lately, now=NOW).similar == "1 like it in 90 days, granted"


def test_context_admits_when_it_has_not_read_everything() -> None:
    asked = request("this", status=Status.PENDING, days_ago=0)

    read = Page((request("other", status=Status.REVOKED),), "older")
    assert context_of(asked, read, now=NOW).similar.startswith("at least 1")
    spoilt = Unreadable("ActiveRequests", "spoilt", "status: nonsense")
    old = request("old", status=Status.REVOKED, days_ago=91)
    assert context_of(asked, Page((old,), None, (spoilt,)), now=NOW).similar == "none like it among the latest"


RULE = Rule(
    name="prod",
    version=1,
    position=0,
    hash="h",
    effect=Effect.ALLOW,
    subjects=People(groups=("/",)),
    terms=AccountTerms(AccountTargets(ous=("/Prod",), tags={"env": ("prod", "live")}), ("Read",)),
    default_duration_seconds=3600,
    min_duration_seconds=60,
    max_duration_seconds=28_800,
    approval=Approval(required=True, quorum=2, approvers=People(groups=("/security",), users=("bob@example.com",))),
    ticket=Ticket(required=True, pattern="CHG-[0-9]+"),
)


def test_a_rule_in_lines() -> None:
    lines = lines_of(RULE)

    assert (lines["Effect"], lines["Kind"], lines["Who"]) == ("allows", "AWS account", "everybody")
    assert lines["Where"] == "/Prod; env is prod or live"
    assert lines["Longest"] == "8 h"
    assert lines["Approval"] == "2 approvals from /security or bob@example.com"
    assert lines["Ticket"] == "must match CHG-[0-9]+"


def test_differences_of_two_versions() -> None:
    after = replace(RULE, version=2, max_duration_seconds=3600, ticket=Ticket(required=False, pattern=""))

    changes = {change.label: (change.before, change.after) for change in changes_between(RULE, after)}

    assert changes == {"Longest": ("8 h", "1 h"), "Ticket": ("must match CHG-[0-9]+", "not needed")}
    assert changes_between(RULE, replace(RULE, version=2, is_removed=True))[0].after == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"expires_at": NOW.timestamp()}, ("Expires at", "", NOW)),
        ({"duration_seconds": 5400}, ("Duration", "1 h 30 min", None)),
        ({"fallback": True}, ("Fallback", "yes", None)),
        ({"claims": ["a", "b"]}, ("Claims", "a, b", None)),
        ({"receipt": {"job_id": "j"}}, ("Receipt, job id", "j", None)),
    ],
)
def test_audit_data_in_words(data: dict[str, Any], words: tuple[str, str, datetime | None]) -> None:
    line = next(facts_of(data))

    assert (line.label, line.words, line.moment) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "0 s"), (59, "59 s"), (3599, "59 min"), (3661, "1 h"), (86_399, "23 h"), (97_300, "1 d 3 h")]
)
def test_time_until(seconds: int, words: str) -> None:
    assert until(NOW + timedelta(seconds=seconds), NOW) == words


def test_a_rule_about_groups_is_told_in_its_own_words() -> None:
    (rule,) = read_rules(
        "rules: [{name: a, kind: group, effect: allow, subjects: {groups: [/engineering]}, targets: {groups: [/support],"
        " subtrees: [/engineering]}, roles: [reader], duration: {max: 1d}, approval: {required: true}}]"
    )
    lines = lines_of(rule)
    assert (lines["Where"], lines["Roles"], lines["Approval"]) == (
        "/engineering and below, /support",
        "reader",
        "one approval from the group's admins",
    )
    assert "Permission sets" not in lines
    assert limits_words(rule) == "up to 1 d, one approval from the group's admins"


def test_one_word_for_a_state_has_one_colour_on_every_page() -> None:
    tones: dict[str, set[str]] = {}
    for path in (settings.BASE_DIR / "templates").rglob("*.html"):
        for tone, word in re.findall(r'class="state (live|wait|stop|done|held)"[^>]*>([A-Z][^<{]*)<', path.read_text()):
            tones.setdefault(word, set()).add(tone)
    for word, tone in (*sandboxes.WORDS.values(), *account_pool.WORDS.values(), *leases.WORDS.values()):
        tones.setdefault(word, set()).add(tone)

    assert {word: sorted(found) for word, found in tones.items() if len(found) > 1} == {}
    assert tones["Disabled"] == {"done"}
