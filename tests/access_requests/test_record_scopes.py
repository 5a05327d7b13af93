"""Who is bounded by a rule: for each kind of scope what its patterns hold, what Alice can ask for, and what she learns of the others."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.kinds.records import covers_scope
from accessportal.authz.operations import begin_deletion, grant, set_policy
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType, TtlPolicy
from accessportal.rules import operations as rules
from tests.api.test_authz import HOMES
from tests.depth import IS_DEEP
from tests.fixtures_story import RULES, Story
from tests.portal.conftest import SignedIn, signed_in
from tests.portal.test_journey import HTMX, text_of
from tests.sandboxes.test_requests import requests

__all__ = ["signed_in"]

# A scope in a rule is itself alone, also the global one; what lies below it is written with a star.
HELD: dict[str, set[str]] = {
    "global": {"global"},
    "tenant:acme": {"tenant:acme"},
    "tenant:acme:*": {"tenant:acme:env:prod"},
    "tenant:acme:env:prod": {"tenant:acme:env:prod"},
    "env:prod": {"env:prod"},
    "custom:a": {"custom:a"},
    "custom:a:*": {"custom:a:b"},
    "tenant:*": {"tenant:acme", "tenant:acme-corp", "tenant:acme:env:prod"},
    "*": set(HOMES),
}
PATTERNS = tuple(HELD)


@pytest.fixture
def rules_by_scope(story: Story) -> None:
    """For each pattern a rule about a resource and an object that is called like its number."""
    text, common = RULES, "effect: allow, subjects: {groups: [/engineering]}, duration: {max: 8h}, approval: {required: false}"
    for number, pattern in enumerate(PATTERNS):
        for kind, names in (("approval", "resources: [r{}], actions: [GET]"), ("relationship", "relations: [reads], objects: [r{}]")):
            targets = f'{{scopes: ["{pattern}"], {names.format(number)}}}'
            text += f"  - {{name: {kind}-{number}, kind: {kind}, {common}, targets: {targets}}}\n"
    rules.apply_rules(text=text, actor=story.olga, now=story.clock.now())


def target_of(number: int, scope: str) -> tuple[str, dict[str, str]]:
    """The two kinds in turn."""
    if number % 2:
        return "relationship", {"scope": scope, "relation": "reads", "object": f"r{number}", "relation_type": "role"}
    return "approval", {"scope": scope, "resource": f"r{number}", "action": "GET"}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_holds_what_it_names(pattern: str) -> None:
    assert {scope for scope in HOMES if covers_scope([pattern], scope)} == HELD[pattern]


@pytest.mark.django_db
@pytest.mark.usefixtures("rules_by_scope")
def test_the_form_offers_what_a_rule_holds_and_no_other_scope(story: Story, signed_in: SignedIn) -> None:
    alice, mallory = signed_in("alice"), signed_in("mallory")

    for (number, pattern), scope in itertools.product(enumerate(PATTERNS), HOMES):
        kind, target = target_of(number, scope)
        told = text_of(alice.get(f"/requests/new/{kind}/preview/", {**target, "duration": "1h"}, headers=HTMX))
        assert ("Approved at once" in told) is (scope in HELD[pattern]), (pattern, scope)
        if number < 2:
            told = text_of(mallory.get(f"/requests/new/{kind}/preview/", {**target, "duration": "1h"}, headers=HTMX))
            assert "Approved at once" not in told, (pattern, scope)


@pytest.mark.django_db
@pytest.mark.usefixtures("rules_by_scope")
def test_of_scopes_that_no_rule_holds_the_form_tells_nothing(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes by the same reads, whether or not there is a record of hers, a policy, or a deletion."""
    alice, numbers = signed_in("alice"), range(len(PATTERNS)) if IS_DEEP else (1, 2)
    outside = [(number, scope) for number in numbers for scope in HOMES if scope not in HELD[PATTERNS[number]]]

    def told() -> list[tuple[Any, ...]]:
        found = list[tuple[Any, ...]]()
        for number, scope in outside:
            kind, target = target_of(number, scope)
            with requests(monkeypatch) as asked:
                seen = alice.get(f"/requests/new/{kind}/preview/", {**target, "duration": "1h"}, headers=HTMX)
            form = {**target, "duration": "1h", "ticket_id": "", "reason": "Look", "submission_id": str(uuid.uuid4())}
            sent = alice.post(f"/requests/new/{kind}/", form)
            found.append((number, scope, seen.content, tuple(asked), sent.status_code, text_of(sent).replace(form["submission_id"], "")))
        return found

    before, caller, now = told(), caller_of(story.olga), story.clock.now()
    for number, scope in outside:
        who, where, thing = "alice@example.com", read_scope(scope), f"r{number}"
        if number % 2:
            link = Relationship(where, who, "reads", thing, RelationType.ROLE, "olga", now)
            grant(RELATIONSHIPS, link, ttl_seconds=60, caller=caller, now=now)
        else:
            grant(APPROVALS, Approval(where, who, thing, "GET", "olga", now), ttl_seconds=60, caller=caller, now=now)
    for where in map(read_scope, HOMES):
        set_policy(scope=where, policy=TtlPolicy(None, 60, 60), caller=caller, now=now)
        begin_deletion(scope=where, typed=where, caller=caller, now=now)

    assert told() == before
    assert {status for *_, status, _ in before} <= {403, 422}
    assert queries.list_mine(actor=story.alice).items == ()
