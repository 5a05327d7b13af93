"""The decision: a table of questions and answers, then what makes it explain itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from accessportal.access_requests.kinds.sandbox.terms import SandboxAsked
from accessportal.kernel.actors import Role, person, system
from accessportal.rules.policy import decide, may_apply
from accessportal.rules.states import Question, Rule, RuleDecision
from accessportal.rules.tickets import pattern_fault, ticket_matches
from tests.rules.stories import HOUR, MALLORY, PROD, SECURITY, ask, changed_terms, in_tree, rules


def answer(**facts: Any) -> RuleDecision:
    return decide(rules(), ask(**facts))


def decided_by(decision: RuleDecision) -> str:
    return decision.rule.name if decision.rule else ""


ALLOWED = [
    pytest.param({}, "payments-dev", id="first rule that fits"),
    pytest.param({"duration_seconds": 60}, "payments-dev", id="exactly the shortest"),
    pytest.param({"duration_seconds": 4 * HOUR}, "payments-dev", id="exactly the longest"),
    pytest.param({"duration_seconds": 5 * HOUR, "ticket_id": "CHG-1"}, "payments-dev-long", id="a later rule admits longer"),
    pytest.param({"ticket_id": "CHG-1"}, "payments-dev-long", id="a ticket of another form rules the first out"),
    pytest.param({"ticket_id": "DEV-1"}, "payments-dev", id="a ticket of the right form, not required"),
    pytest.param({"duration_seconds": 5 * HOUR, "ticket_id": None}, "payments-dev-long", id="ticket not given yet"),
    pytest.param({"duration_seconds": None, "ticket_id": None}, "payments-dev", id="empty form"),
    pytest.param({"tags": None}, "payments-dev", id="unreadable tags that no rule in question needs"),
    pytest.param(PROD, "prod-readonly", id="production with ticket"),
    pytest.param(PROD | {"tags": {"env": "live"}}, "prod-readonly", id="second accepted tag value"),
    pytest.param({"ou_path": "/Workloads/Dev/Deep/Er"}, "payments-dev", id="an OU includes what is below"),
    pytest.param(in_tree("/engineering", "/engineering/payments"), "payments-dev", id="a group itself"),
    pytest.param(in_tree("/engineering", "/engineering/payments", "/cards"), "payments-dev", id="a group below, whatever its path"),
    pytest.param(
        {"subject": "carol@example.com", "subject_groups": frozenset(), "account_name": "legacy-one", "permission_set": "ReadOnlyAccess"},
        "named-account",
        id="user and account by name, in any case",
    ),
    pytest.param(
        {"subject": "carol@example.com", "subject_groups": frozenset(), "account_id": "000000000007", "permission_set": "ReadOnlyAccess"},
        "named-account",
        id="account by id",
    ),
]


@pytest.mark.parametrize(("facts", "rule"), ALLOWED)
def test_allowed_by(facts: dict[str, Any], rule: str) -> None:
    decision = answer(**facts)
    assert (decision.allowed, decision.code, decided_by(decision)) == (True, "allowed", rule)
    assert decision.field == ""
    assert decision.remedies == ()


REFUSED = [
    pytest.param({"duration_seconds": 9 * HOUR, "ticket_id": "CHG-1"}, "duration_too_long", "duration", id="longer than any rule"),
    pytest.param({"duration_seconds": 59}, "duration_too_short", "duration", id="shorter than any rule"),
    pytest.param({"duration_seconds": 0}, "duration_too_short", "duration", id="zero"),
    pytest.param({"duration_seconds": -HOUR}, "duration_too_short", "duration", id="negative"),
    pytest.param({"duration_seconds": 5 * HOUR}, "ticket_missing", "ticket_id", id="longer needs a ticket"),
    pytest.param({"duration_seconds": 9 * HOUR, "ticket_id": "x"}, "duration_too_long", "", id="too long and a wrong ticket"),
    pytest.param(PROD | {"ticket_id": ""}, "ticket_missing", "ticket_id", id="ticket missing"),
    pytest.param(PROD | {"ticket_id": "xCHG-1"}, "ticket_mismatch", "ticket_id", id="something before the ticket"),
    pytest.param(PROD | {"ticket_id": "CHG-1x"}, "ticket_mismatch", "ticket_id", id="something after the ticket"),
    pytest.param(PROD | {"ticket_id": "CHG-1\n"}, "ticket_mismatch", "ticket_id", id="newline after the ticket"),
    pytest.param(PROD | {"ticket_id": "CHG-" + "1" * 300}, "ticket_mismatch", "ticket_id", id="endless ticket"),
    pytest.param(PROD | {"ticket_id": "CHG-\ud800"}, "ticket_mismatch", "ticket_id", id="not even text"),
    pytest.param(PROD | {"permission_set": "AdministratorAccess"}, "permission_set_not_offered", "permission_set", id="other set"),
    pytest.param(PROD | {"permission_set": "readonlyaccess"}, "permission_set_not_offered", "permission_set", id="sets are exact"),
    pytest.param(MALLORY, "subject_not_covered", "", id="stranger"),
    pytest.param({"ou_path": "/Sandbox"}, "account_not_covered", "account", id="other account"),
    pytest.param({"ou_path": "/Workloads/Development"}, "account_not_covered", "account", id="a name that only begins alike"),
    pytest.param({"ou_path": "/workloads/dev"}, "account_not_covered", "account", id="OU paths are exact"),
    pytest.param({"ou_path": "/"}, "account_not_covered", "account", id="above the OU"),
    pytest.param(PROD | {"tags": {"env": "dev"}}, "account_not_covered", "account", id="tag with another value"),
    pytest.param(PROD | {"tags": {}}, "account_not_covered", "account", id="no such tag"),
    pytest.param(PROD | {"tags": None}, "tags_unreadable", "", id="unreadable tags are not no tags"),
    pytest.param(PROD | {"tags": None, "duration_seconds": 99 * HOUR}, "tags_unreadable", "", id="unreadable tags, and too long"),
    pytest.param(
        {
            "subject": "x@example.com",
            "subject_groups": frozenset({"/contractors/outside"}),
            "permission_set": "AdministratorAccess",
            "tags": None,
        },
        "tags_unreadable",
        "",
        id="unreadable tags of a deny",
    ),
    pytest.param({"subject_groups": None}, "groups_unreadable", "", id="unreadable groups"),
    pytest.param({"ou_path": None}, "ou_unreadable", "", id="unreadable place"),
    pytest.param(SECURITY, "denied_by_rule", "account", id="denied to everybody"),
    pytest.param(SECURITY | MALLORY, "denied_by_rule", "account", id="denied to a stranger too"),
    pytest.param(SECURITY | {"duration_seconds": None, "ticket_id": None}, "denied_by_rule", "account", id="denied in an empty form"),
    pytest.param(in_tree("/engineering"), "ticket_missing", "ticket_id", id="a group above is not in it"),
    pytest.param(in_tree("/", "/engineering/payments/moved"), "subject_not_covered", "", id="a group that was moved away"),
]


@pytest.mark.parametrize(("facts", "code", "field"), REFUSED)
def test_refused_because(facts: dict[str, Any], code: str, field: str) -> None:
    decision = answer(**facts)
    assert (decision.allowed, decision.code, decision.field) == (False, code, field)
    assert decision.reason.endswith(".")


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(in_tree("/contractors", below=["/contractors/outside", "/eu"]), id="above"),
        pytest.param(in_tree("/contractors", "/contractors/outside", below=["/eu"]), id="itself"),
        pytest.param(in_tree("/contractors", "/contractors/outside", "/eu"), id="below"),
    ],
)
def test_a_deny_refuses_every_group_that_it_would_reach(subject: dict[str, Any]) -> None:
    """Access for ``/contractors`` would serve ``/contractors/outside`` too."""
    decision = answer(**subject, permission_set="AdministratorAccess", tags={"pii": "yes"})
    assert decided_by(decision) == "no-contractor-admin"
    assert decision.field == "permission_set"


def test_a_deny_stands_above_allows_wherever_it_is_in_the_file() -> None:
    decision = decide(tuple(reversed(rules())), ask(**SECURITY, subject_groups=frozenset({"/engineering"})))
    assert decided_by(decision) == "no-security"
    assert decision.max_duration_seconds == 0
    assert decision.reason == "Rule no-security refuses every permission set on /Security to everybody. Ask the security team."


def test_an_earlier_rule_with_unreadable_tags_stops_a_later_one() -> None:
    """The later rule would be the first only if the tags did not match; nobody knows."""
    first = changed_terms(rules()[4], permission_sets=("ReadOnlyAccess",))
    second = dataclasses.replace(changed_terms(first, targets=dataclasses.replace(first.terms.targets, tags={})), name="easy")
    assert decide([first, second], ask(**PROD | {"tags": None})).code == "tags_unreadable"
    assert decided_by(decide([second, first], ask(**PROD | {"tags": None}))) == "easy"


def test_the_reason_of_a_yes_names_the_demand_of_its_rule_alone() -> None:
    decision = answer(**PROD)
    assert decision.reason == (
        "Rule prod-readonly admits it: up to 8 h, 2 approvals from /security or sam@example.com, a ticket like CHG-4711."
    )


@pytest.mark.parametrize(
    ("total_hours", "held_hours", "asked_hours", "code", "longest_hours"),
    [
        (0, 0, 4, "allowed", 4),
        (0, 3, 1, "allowed", 1),
        (0, 3, 2, "duration_too_long", 1),
        (0, 4, 1, "duration_too_long", 0),
        (0, 16, 1, "duration_too_long", 0),
        (0, 4, None, "duration_too_long", 0),
        (8, 4, 4, "allowed", 4),
        (8, 5, 4, "duration_too_long", 3),
        (8, 5, 3, "allowed", 3),
    ],
)
def test_the_longest_counts_what_is_held_already(
    total_hours: int, held_hours: int, asked_hours: int | None, code: str, longest_hours: int
) -> None:
    rule = next(one for one in rules() if one.name == "payments-dev")
    rule = dataclasses.replace(rule, max_total_seconds=total_hours * HOUR)
    seconds = None if asked_hours is None else asked_hours * HOUR

    decision = decide([rule], ask(duration_seconds=seconds, held_seconds=held_hours * HOUR))

    assert (decision.code, decision.max_duration_seconds) == (code, longest_hours * HOUR)
    if code != "allowed":
        total = f"{total_hours or 4} h"
        assert f"it has been held for {held_hours} h without a gap, of at most {total} by this rule, extensions counted" in decision.reason
        assert "when it has ended" in " ".join(decision.remedies)


def test_who_has_held_what_the_first_rule_gives_is_served_by_the_next() -> None:
    decision = answer(duration_seconds=2 * HOUR, ticket_id="CHG-1", held_seconds=3 * HOUR)

    assert (decided_by(decision), decision.max_duration_seconds) == ("payments-dev-long", 5 * HOUR)


def test_longest_duration_is_that_of_any_rule_that_fits_but_for_its_limits() -> None:
    assert answer(duration_seconds=None, ticket_id=None).max_duration_seconds == 8 * HOUR
    assert answer(duration_seconds=12 * HOUR, ticket_id="CHG-1").max_duration_seconds == 8 * HOUR
    assert answer(**MALLORY).max_duration_seconds == 0


def limited(name: str, minimum: int, maximum: int, *, total: int = 0, **more: Any) -> Rule:
    rule = next(one for one in rules() if one.name == "payments-dev")
    limits: dict[str, Any] = {
        "min_duration_seconds": minimum * HOUR,
        "max_duration_seconds": maximum * HOUR,
        "max_total_seconds": total * HOUR,
    }
    return dataclasses.replace(rule, name=name, **limits, **more)


TICKETED = {"ticket": next(one.ticket for one in rules() if one.name == "payments-dev-long")}
LIMITS = [
    pytest.param([("few", 0, 4), ("many", 0, 8), ("more", 0, 6)], {}, ["Ask for 8 h or less."], id="longer than all"),
    pytest.param([("late", 24, 48), ("soon", 16, 48)], {}, ["Ask for 16 h or more."], id="shorter than all"),
    pytest.param([("few", 0, 4), ("late", 16, 48)], {}, ["Ask for 4 h or less.", "Ask for 16 h or more."], id="between them"),
    pytest.param(
        [("held", 0, 4, 8), ("free", 0, 6, 24)],
        {"held_seconds": 6 * HOUR},
        ["Ask for 6 h or less."],
        id="held for a while, which one rule counts to less",
    ),
]


@pytest.mark.parametrize(("given", "facts", "remedies"), LIMITS)
@pytest.mark.parametrize("is_ticketed", [False, True])
def test_of_several_limits_only_the_most_generous_is_a_remedy(
    given: list[tuple[Any, ...]], facts: dict[str, Any], remedies: list[str], is_ticketed: bool
) -> None:
    """What the others give beside it would contradict it; where every rule wants a ticket as well, each remedy says both."""
    more = TICKETED if is_ticketed else {}
    among = [limited(name, minimum, maximum, total=sum(total), **more) for name, minimum, maximum, *total in given]

    decision = decide(among, ask(duration_seconds=12 * HOUR, **facts))

    assert not decision.allowed
    assert list(decision.remedies) == [f"{one} Give a ticket like CHG-4711." if is_ticketed else one for one in remedies]
    assert decide(among, ask(**{**facts, "duration_seconds": None, "ticket_id": None})).allowed


def test_too_long_names_the_largest_maximum_and_what_would_help() -> None:
    decision = answer(duration_seconds=12 * HOUR, ticket_id=None)
    assert decision.reason == "12 h is more than the longest 8 h (rule payments-dev-long)."
    assert decision.remedies == ("Ask for 8 h or less.",)


def test_a_ticket_that_makes_it_possible_is_asked_for() -> None:
    decision = answer(duration_seconds=6 * HOUR)
    assert decision.reason == "Rule payments-dev-long: a ticket like CHG-4711 is needed."
    assert decision.remedies == ("Give a ticket like CHG-4711.", "Ask for 4 h or less.")


def test_every_rule_that_did_not_decide_says_every_reason() -> None:
    decision = answer(**MALLORY, permission_set="ReadOnlyAccess", duration_seconds=12 * HOUR)
    reasons = {miss.rule_name: miss.reasons for miss in decision.misses}
    assert list(reasons) == [rule.name for rule in rules()]
    assert reasons["prod-readonly"] == (
        "mallory@example.com is not in /engineering",
        "payments-dev is in /Workloads/Dev, not below /Workloads/Prod",
        "12 h is more than this rule's longest 8 h",
        "a ticket like CHG-4711 is needed",
    )
    assert reasons["named-account"] == (
        "mallory@example.com is not carol@example.com",
        "payments-dev is not Legacy-One or 000000000007",
        "12 h is more than this rule's longest 2 h",
    )
    assert reasons["no-security"] == ("payments-dev is in /Workloads/Dev, not below /Security",)


def test_nobody_is_told_how_to_be_denied_as_well() -> None:
    remedies = {miss.rule_name: miss.remedies for miss in answer(**MALLORY).misses}
    assert remedies["no-security"] == ()
    assert remedies["prod-readonly"]


def test_a_stranger_learns_which_group_would_help() -> None:
    decision = answer(**MALLORY)
    assert decision.reason == "mallory@example.com is in none of the groups that may ask for PowerUserAccess on payments-dev."
    assert decision.remedies[0] == "Join /engineering/payments."


def test_a_wrong_permission_set_learns_what_is_offered() -> None:
    assert answer(**PROD | {"permission_set": "AdministratorAccess"}).remedies == ("Ask for ReadOnlyAccess.",)


def test_misses_of_a_yes_are_the_rules_before_it() -> None:
    assert [miss.rule_name for miss in answer().misses] == ["no-security", "no-contractor-admin"]


def test_rules_of_another_kind_admit_nothing() -> None:
    asked = Question(asked=SandboxAsked(), subject="alice@example.com", subject_groups=frozenset({"/engineering"}))
    assert decide(rules(), asked).code == "no_rule"


def test_no_rules_admit_nothing() -> None:
    assert decide((), ask()).code == "no_rule"


def test_a_decision_asks_nothing_of_its_input_but_reading() -> None:
    question: Question = ask()
    assert decide(rules(), question) == decide(rules(), question)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*b", "(.*)*(.*)*(.*)*x", "([a-z]+)*[0-9]", "(?:a?){50}a{50}"])
def test_no_pattern_can_make_a_ticket_slow(pattern: str) -> None:
    assert pattern_fault(pattern) == ""
    # An engine that goes back and tries again would not come to an end with these.
    assert not ticket_matches(pattern, "a" * 199 + "!")


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(", "unclosed group"),
        ("a)|(b", "unopened group"),
        ("(?=a)", "look-around"),
        (r"(a)\1", "backreferences"),
        ("[z-a]", "range"),
        ("(a{1000}){1000}", "size limit"),
        ("(?x)a # b", "unclosed group"),
    ],
)
def test_a_pattern_that_can_not_be_one_says_why(pattern: str, fault: str) -> None:
    assert fault in pattern_fault(pattern)


def test_alternatives_are_matched_whole() -> None:
    assert ticket_matches("CHG-[0-9]+|INC-[0-9]+", "INC-7")
    assert not ticket_matches("CHG-[0-9]+|INC-[0-9]+", "CHG-7 or INC-7")


def test_only_operators_and_the_portal_put_rules_in_force() -> None:
    assert may_apply(person("olga@example.com", roles=frozenset({Role.OPERATOR}))).allowed
    assert may_apply(system("load-demo")).allowed
    for actor in (person("mallory@example.com"), person("ana@example.com", roles=frozenset({Role.AUDITOR}))):
        assert may_apply(actor).code == "rules_operators_only"
