"""Plans in words, applying them, and asking the rules in force with live people."""

from __future__ import annotations

import pytest

from accessportal.audit import queries as audit
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import Account, PermissionSet
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.errors import Conflict, NotAllowed
from accessportal.kernel.pages import Page
from accessportal.rules import operations, queries
from accessportal.rules.states import InvalidRules, RulePlan
from tests.rules.stories import NOW, OLGA, RULES, SECURITY, ask

pytestmark = pytest.mark.usefixtures("people", "cloud")

ACCOUNTS = (
    Account("000000000001", "payments-dev", "", "ACTIVE", "/Workloads/Dev", {"env": "dev"}, is_management=False),
    Account("000000000002", "payments-prod", "", "ACTIVE", "/Workloads/Prod/Payments", {"env": "prod"}, is_management=False),
    Account("000000000003", "audit", "", "ACTIVE", "/Security/Logs", {}, is_management=False),
    Account("000000000004", "shop-prod", "", "ACTIVE", "/Workloads/Prod", None, is_management=False),
    Account("000000000007", "legacy-one", "", "ACTIVE", "/", {}, is_management=False),
)
SETS = tuple(PermissionSet(f"arn:{name}", name, "", 3600) for name in ("ReadOnlyAccess", "PowerUserAccess", "AdministratorAccess"))

DEV = """
rules:
  - name: dev
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering/payments]}
    targets: {ous: [/Workloads/Dev]}
    permission_sets: [PowerUserAccess]
    duration: {max: 4h}
    approval: {required: false}
"""
CLOSED = """
rules:
  - {name: closed, kind: aws_account, effect: deny, subjects: {groups: [/]}, targets: {ous: [/Security]}}
"""


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five accounts and three permission sets, without the catalog's database."""
    monkeypatch.setattr(catalog, "list_accounts", lambda **_: Page(ACCOUNTS))
    monkeypatch.setattr(catalog, "list_permission_sets", lambda **_: Page(SETS))


def load(text: str) -> RulePlan:
    return operations.apply_rules(text=text, actor=OLGA, now=NOW)


def changed(old: str, new: str, *, text: str = DEV) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Gains and losses when ``old`` is replaced by ``new`` in the one rule of ``text``."""
    assert old in text
    load(text)
    plan = operations.plan_rules(text=text.replace(old, new), now=NOW)
    if not plan.impacts:
        return (), ()
    (impact,) = plan.impacts
    return impact.gains, impact.loses


def test_a_first_load_tells_who_gains_what() -> None:
    plan = operations.plan_rules(text=DEV, now=NOW)
    assert ([rule.name for rule in plan.added], plan.changed, plan.removed, plan.base_version) == (["dev"], (), (), 0)
    (impact,) = plan.impacts
    assert impact.gains == ("/engineering/payments (2 people) gains PowerUserAccess on /Workloads/Dev (1 account) up to 4 h, no approval",)
    assert impact.loses == ()
    assert plan.warnings == ()
    assert queries.current_rules() == ()


def test_a_plan_says_when_tags_could_not_be_read() -> None:
    (impact,) = operations.plan_rules(
        text=DEV.replace("ous: [/Workloads/Dev]", "ous: [/Workloads/Prod], tags: {env: [prod]}"), now=NOW
    ).impacts
    assert "on /Workloads/Prod with tag env prod (1 account, and 1 whose tags can't be read)" in impact.gains[0]


def test_a_new_deny_takes_away_and_a_removed_one_gives_back() -> None:
    (impact,) = load(CLOSED).impacts
    assert (impact.gains, impact.loses) == ((), ("everybody is refused every permission set on /Security (1 account)",))
    (impact,) = operations.plan_rules(text="rules: []", now=NOW).impacts
    assert (impact.gains, impact.loses) == (("everybody is no longer refused every permission set on /Security (1 account)",), ())


def test_a_removed_rule_takes_away() -> None:
    load(DEV)
    plan = operations.plan_rules(text="rules: []", now=NOW)
    assert [rule.name for rule in plan.removed] == ["dev"]
    assert plan.impacts[0].loses == ("/engineering/payments (2 people) loses PowerUserAccess on /Workloads/Dev (1 account)",)


CHANGES = [
    pytest.param(
        "/engineering/payments", "/engineering",
        ("erin@example.com (1 person) gains PowerUserAccess on /Workloads/Dev (1 account) up to 4 h, no approval",), (),
        id="a wider group",
    ),
    pytest.param(
        "{groups: [/engineering/payments]}", "{users: [alice@example.com]}",
        (), ("paul@example.com (1 person) loses PowerUserAccess on /Workloads/Dev (1 account)",),
        id="one person of the group",
    ),
    pytest.param(
        "/engineering/payments", "/",
        ("everybody gains PowerUserAccess on /Workloads/Dev (1 account) up to 4 h, no approval",), (),
        id="everybody",
    ),
    pytest.param(
        "/Workloads/Dev", "/Workloads",
        ("/engineering/payments (2 people) gains PowerUserAccess on payments-prod and shop-prod (2 accounts) up to 4 h, no approval",), (),
        id="more accounts",
    ),
    pytest.param(
        "[PowerUserAccess]", "[ReadOnlyAccess]",
        ("/engineering/payments (2 people) gains ReadOnlyAccess on /Workloads/Dev (1 account) up to 4 h, no approval",),
        ("/engineering/payments (2 people) loses PowerUserAccess on /Workloads/Dev (1 account)",),
        id="another permission set",
    ),
    pytest.param(
        "[/engineering/payments]", "[/engineering/payments, /data]",
        ("/data (nobody new now) gains PowerUserAccess on /Workloads/Dev (1 account) up to 4 h, no approval",), (),
        id="a group without people",
    ),
    pytest.param("max: 4h", "max: 8h", ("/engineering/payments (2 people): up to 8 h instead of 4 h",), (), id="longer"),
    pytest.param("max: 4h", "max: 2h", (), ("/engineering/payments (2 people): up to 2 h instead of 4 h",), id="shorter"),
    pytest.param("max: 4h", "min: 5m, max: 4h", (), ("/engineering/payments (2 people): from 5 min instead of 1 min",), id="a minimum"),
    pytest.param(
        "{required: false}", "{required: true, approvers: {groups: [/security]}}",
        ("/security may approve",), ("/engineering/payments (2 people): one approval from /security instead of no approval",),
        id="approval",
    ),
    pytest.param(
        "{required: false}", "{required: false}\n    ticket: {required: true, pattern: 'CHG-[0-9]+'}",
        (), ("/engineering/payments (2 people): a ticket like CHG-4711 is needed",),
        id="ticket",
    ),
    pytest.param("max: 4h", "default: 2h, max: 4h", (), (), id="only the default"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "gains", "loses"), CHANGES)
def test_a_changed_rule_tells_the_difference_alone(old: str, new: str, gains: tuple[str, ...], loses: tuple[str, ...]) -> None:
    assert changed(old, new) == (gains, loses)


def test_a_wider_deny_takes_more_away() -> None:
    assert changed("/Security", "/Workloads/Prod", text=CLOSED) == (
        ("everybody is no longer refused every permission set on audit (1 account)",),
        ("everybody is refused every permission set on payments-prod and shop-prod (2 accounts)",),
    )


def test_a_deny_that_becomes_whole_takes_the_rest() -> None:
    text = CLOSED.replace("effect: deny,", "effect: deny, permission_sets: [AdministratorAccess],")
    assert changed(" permission_sets: [AdministratorAccess],", "", text=text) == (
        (),
        ("everybody is refused every permission set but AdministratorAccess on /Security (1 account)",),
    )


def test_a_deny_of_some_sets_gives_the_others_back() -> None:
    gains, loses = changed("effect: deny,", "effect: deny, permission_sets: [AdministratorAccess],", text=CLOSED)
    assert gains == ("everybody is no longer refused every permission set but AdministratorAccess on /Security (1 account)",)
    assert loses == ()


def test_an_allow_that_becomes_a_deny_is_told_as_both() -> None:
    load(DEV)
    text = "rules: [{name: dev, kind: aws_account, effect: deny, subjects: {groups: [/security]}, targets: {ous: [/Security]}}]"
    (impact,) = operations.plan_rules(text=text, now=NOW).impacts
    assert impact.gains == ()
    assert impact.loses == (
        "/engineering/payments (2 people) loses PowerUserAccess on /Workloads/Dev (1 account)",
        "/security (2 people) is refused every permission set on /Security (1 account)",
    )


def test_a_plan_has_the_differences_key_by_key() -> None:
    load(DEV)
    plan = operations.plan_rules(text=DEV.replace("4h", "8h").replace("[/Workloads/Dev]", "[/Workloads/Dev, /Sandbox]"), now=NOW)
    (change,) = plan.changed
    assert [(field.field, field.old, field.new) for field in change.fields] == [
        ("targets.ous", "/Workloads/Dev", "/Sandbox, /Workloads/Dev"),
        ("duration.max", "4 h", "8 h"),
    ]


def test_a_plan_warns_of_names_that_mean_nothing_now() -> None:
    text = DEV.replace("[/engineering/payments]", "[/engineering/paymints], users: [zoe@example.com]")
    text = text.replace("[PowerUserAccess]", "[PowerUser]").replace("ous: [/Workloads/Dev]", "ous: [/Workloads/dev], accounts: [nowhere]")
    assert operations.plan_rules(text=text, now=NOW).warnings == (
        "Rule dev: there is no group /engineering/paymints.",
        "Rule dev: there is no person zoe@example.com.",
        "Rule dev: there is no account in or below /Workloads/dev.",
        "Rule dev: there is no account nowhere.",
        "Rule dev: there is no permission set PowerUser.",
    )


def test_an_empty_catalog_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "list_accounts", lambda **_: Page(()))
    assert operations.plan_rules(text=DEV, now=NOW).warnings == (
        "The catalog has no accounts yet: accounts, OUs and permission sets were not checked.",
    )


def test_applying_puts_in_force_what_was_planned_and_twice_changes_nothing() -> None:
    plan = load(RULES)
    assert plan.rules == queries.current_rules()
    again = load(RULES)
    assert again.is_empty
    assert queries.current_set().version == 1
    assert len(audit.history("rule#payments-dev", newest_first=False).items) == 1


def test_another_order_is_a_change() -> None:
    load(RULES)
    first, _, rest = RULES.partition("  - name: no-contractor-admin")
    head, _, no_security = first.partition("  - name: no-security")
    plan = load(f"{head}  - name: no-contractor-admin{rest}  - name: no-security{no_security}")
    assert plan.is_reordered
    assert (plan.added, plan.changed, plan.removed, plan.impacts) == ((), (), (), ())
    assert queries.current_rules()[-1].name == "no-security"


def test_only_operators_and_the_portal_apply() -> None:
    for actor in (person("mallory@example.com"), person("ana@example.com", roles=frozenset({Role.AUDITOR}))):
        with pytest.raises(NotAllowed):
            operations.apply_rules(text=DEV, actor=actor, now=NOW)
    assert queries.current_rules() == ()
    operations.apply_rules(text=DEV, actor=system("load-demo"), now=NOW)
    assert queries.find_rule(name="dev") is not None


def test_a_wrong_file_changes_nothing() -> None:
    load(DEV)
    with pytest.raises(InvalidRules):
        load(RULES.replace("8h", "8 ours"))
    assert [rule.name for rule in queries.current_rules()] == ["dev"]


def test_a_plan_that_somebody_looked_at_must_still_hold() -> None:
    plan = operations.plan_rules(text=RULES, now=NOW)
    load(DEV)
    with pytest.raises(Conflict) as caught:
        operations.apply_rules(text=RULES, base_version=plan.base_version, actor=OLGA, now=NOW)
    assert caught.value.code == "rules_changed"
    assert [rule.name for rule in queries.current_rules()] == ["dev"]
    operations.apply_rules(text=RULES, base_version=1, actor=OLGA, now=NOW)


def test_alice_is_told_by_the_rules_in_force() -> None:
    assert queries.decide(question=ask(), among=queries.current_rules()).code == "no_rule"
    load(RULES)
    assert queries.decide(question=ask(), among=queries.current_rules()).allowed
    assert queries.decide(question=ask(**SECURITY), among=queries.current_rules()).code == "denied_by_rule"
