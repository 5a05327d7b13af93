"""Rules files: what is read, and how every mistake is told."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accessportal.access_requests.kinds.aws_account.terms import AccountTargets
from accessportal.rules.loading import MOST_RULES, hash_of, read_rules
from accessportal.rules.states import Effect, InvalidRules, Rule, RuleProblem
from tests.depth import examples
from tests.rules.stories import HOUR, RULES, rules

DEMO = Path(__file__).parent.parent.parent / "accessportal" / "demo" / "rules.yaml"

GOOD = """\
rules:
  - name: prod-readonly
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering], users: []}
    targets: {ous: [/Workloads/Prod], accounts: [], tags: {env: [prod]}}
    permission_sets: [ReadOnlyAccess]
    duration: {default: 1h, max: 8h}
    approval: {required: true, quorum: 1, approvers: {groups: [/security], users: []}}
    ticket: {required: true, pattern: "CHG-[0-9]+"}
"""


def problems(text: str | bytes) -> tuple[RuleProblem, ...]:
    with pytest.raises(InvalidRules) as caught:
        read_rules(text)
    assert caught.value.field == "rules"
    assert caught.value.code == "rules_invalid"
    for problem in caught.value.errors:
        assert problem.line >= 1
        assert str(problem) in caught.value.message
    return caught.value.errors


def only_problem(text: str | bytes) -> RuleProblem:
    (found,) = problems(text)
    return found


def with_line(key: str, line: str) -> str:
    """``GOOD`` with the line of ``key`` replaced."""
    return "".join(f"    {line}\n" if old.strip().startswith(f"{key}:") else f"{old}\n" for old in GOOD.splitlines())


def test_the_example_of_the_data_model_is_read_whole() -> None:
    (rule,) = read_rules(GOOD)
    assert (rule.name, rule.kind, rule.effect, rule.position, rule.version) == ("prod-readonly", "aws_account", Effect.ALLOW, 0, 0)
    assert (rule.subjects.groups, rule.subjects.users) == (("/engineering",), ())
    assert rule.terms.targets == AccountTargets(("/Workloads/Prod",), (), {"env": ("prod",)})
    assert rule.terms.offers == ("ReadOnlyAccess",)
    assert (rule.min_duration_seconds, rule.default_duration_seconds, rule.max_duration_seconds) == (60, HOUR, 8 * HOUR)
    assert (rule.approval.required, rule.approval.quorum, rule.approval.approvers.groups) == (True, 1, ("/security",))
    assert (rule.ticket.required, rule.ticket.pattern) == (True, "CHG-[0-9]+")
    assert rule.hash == hash_of(rule)


def test_bytes_and_a_byte_order_mark_are_the_same_file() -> None:
    assert read_rules(b"\xef\xbb\xbf" + GOOD.encode()) == read_rules(GOOD)


def test_values_are_read_as_they_are_written() -> None:
    """YAML would make a number of an account id and a boolean of ``yes``; quotes are easily forgotten."""
    (rule,) = read_rules(with_line("targets", "targets: {accounts: [012345670123, 123456789012], tags: {pii: [yes, 1.0]}}"))
    assert rule.terms.targets.accounts == ("012345670123", "123456789012")
    assert rule.terms.targets.tags == {"pii": ("yes", "1.0")}


def test_people_are_folded_and_kept_once() -> None:
    (rule,) = read_rules(with_line("subjects", "subjects: {users: [Alice@Example.com, alice@example.com]}"))
    assert rule.subjects.users == ("alice@example.com",)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{max: 8h}", (60, HOUR, 8 * HOUR)),
        ("{max: 30m}", (60, 1800, 1800)),
        ("{min: 2h, max: 8h}", (2 * HOUR, 2 * HOUR, 8 * HOUR)),
        ("{min: 1m, default: 90m, max: PT8H}", (60, 5400, 8 * HOUR)),
        ("{max: 365d}", (60, HOUR, 365 * 24 * HOUR)),
    ],
)
def test_durations_have_sensible_defaults(written: str, expected: tuple[int, int, int]) -> None:
    (rule,) = read_rules(with_line("duration", f"duration: {written}"))
    assert (rule.min_duration_seconds, rule.default_duration_seconds, rule.max_duration_seconds) == expected


def test_the_hash_covers_the_content_and_not_its_order() -> None:
    (plain,) = read_rules(with_line("permission_sets", "permission_sets: [A, B]"))
    (turned,) = read_rules(with_line("permission_sets", "permission_sets: [B, A]"))
    (other,) = read_rules(with_line("permission_sets", "permission_sets: [A, C]"))
    assert plain.hash == turned.hash != other.hash
    texts = RULES.replace("Ask the security team.", "Ask them.")
    assert [old.hash == new.hash for old, new in zip(rules(), rules(texts), strict=True)] == [False, True, True, True, True, True]


def test_no_rules_at_all_must_be_said() -> None:
    assert read_rules("rules: []") == ()
    assert "empty" in only_problem("").message
    assert "empty" in only_problem("# nothing here\n").message


MISTAKES = [
    ("duration", "duration: {default: 1h, max: 30m}", 8, "duration.default", "is not between 1 min and 30 min"),
    ("duration", "duration: {min: 9h, default: 1h, max: 8h}", 8, "duration.min", "is longer than the longest"),
    ("duration", "duration: {min: 30s, max: 8h}", 8, "duration.min", "The shortest possible is 1 min"),
    ("duration", "duration: {max: 366d}", 8, "duration.max", "The longest possible is 365 d"),
    ("duration", "duration: {max: 3600}", 8, "duration.max", "is not a duration"),
    ("duration", "duration: {max: -8h}", 8, "duration.max", "can't be negative"),
    ("duration", "duration: {max: 0h}", 8, "duration.max", "longer than zero"),
    ("duration", "duration: {default: 1h}", 8, "duration.max", "The key max is missing"),
    ("duration", "duration: 8h", 8, "duration", "keys with values are needed, not “8h”"),
    ("duration", "duration:", 8, "duration", "keys with values are needed, not nothing"),
    ("approval", "approval: {required: true, quorum: 0, approvers: {groups: [/security]}}", 9, "approval.quorum", "from 1 to 20"),
    ("approval", "approval: {required: true, quorum: 21, approvers: {groups: [/security]}}", 9, "approval.quorum", "from 1 to 20"),
    ("approval", 'approval: {required: true, quorum: "1", approvers: {groups: [/security]}}', 9, "approval.quorum", "whole number"),
    ("approval", "approval: {required: true}", 9, "approval.approvers", "nobody may approve"),
    ("approval", "approval: {required: true, approvers: {groups: [], users: []}}", 9, "approval.approvers", "nobody may approve"),
    ("approval", "approval: {required: true, quorum: 2, approvers: {users: [bob@example.com]}}", 9, "approval.quorum", "only 1 people"),
    ("approval", "approval: {required: false, quorum: 2}", 9, "approval.quorum", "has no meaning"),
    ("approval", 'approval: {required: "true", approvers: {groups: [/security]}}', 9, "approval.required", "true or false"),
    ("approval", "approval: {required: true, approvers: {groups: [/]}}", 9, "approval.approvers.groups[0]", "is not a group path"),
    ("approval", "approval: {}", 9, "approval.required", "The key required is missing"),
    ("ticket", 'ticket: {required: true, pattern: "CHG-("}', 10, "ticket.pattern", "unclosed group"),
    ("ticket", f'ticket: {{required: true, pattern: "{"a" * 201}"}}', 10, "ticket.pattern", "at most 200"),
    ("ticket", "ticket: {pattern: x}", 10, "ticket.required", "The key required is missing"),
    ("subjects", "subjects: {groups: [], users: []}", 5, "subjects", "about nobody"),
    ("subjects", "subjects: {groups: [engineering]}", 5, "subjects.groups[0]", "is not a group path"),
    ("subjects", "subjects: {groups: [/engineering/]}", 5, "subjects.groups[0]", "is not a group path"),
    ("subjects", "subjects: {groups: [/Engineering]}", 5, "subjects.groups[0]", "in lower case"),
    ("subjects", "subjects: {groups: /engineering}", 5, "subjects.groups", "a list is needed"),
    ("subjects", "subjects: {users: [alice]}", 5, "subjects.users[0]", "is not an e-mail address"),
    ("subjects", "subjects: {users: [null]}", 5, "subjects.users[0]", "a text is needed, not nothing"),
    ("subjects", "subjects: {people: [alice@example.com]}", 5, "subjects.people", "“people” is not a key here"),
    ("targets", "targets: {}", 6, "targets", "every account"),
    ("targets", "targets: {ous: [], accounts: []}", 6, "targets", "every account"),
    ("targets", "targets: {ous: [Workloads]}", 6, "targets.ous[0]", "is not an OU path"),
    ("targets", "targets: {ous: [/Workloads//Prod]}", 6, "targets.ous[0]", "is not an OU path"),
    ("targets", "targets: {accounts: [12345]}", 6, "targets.accounts[0]", "12 digits"),
    ("targets", "targets: {tags: {env: []}}", 6, "targets.tags.env", "without accepted values"),
    ("targets", "targets: {tags: {env: prod}}", 6, "targets.tags.env", "a list is needed"),
    ("targets", "targets: {tags: [env]}", 6, "targets.tags", "keys with values"),
    ("permission_sets", "permission_sets: []", 7, "permission_sets", "The list is empty"),
    ("permission_sets", "permission_sets: ['Read Only']", 7, "permission_sets[0]", "is not a permission set name"),
    ("kind", "kind: aws", 3, "kind", "“aws” is not possible here"),
    ("effect", "effect: permit", 4, "effect", "“permit” is not possible here"),
    ("kind", "kinds: aws_account", 2, "kind", "The key kind is missing"),
    ("kind", "kind: aws_account\n    kind: aws_account", 4, "kind", "stands here twice"),
]


@pytest.mark.parametrize(("key", "line", "at_line", "path", "message"), MISTAKES)
def test_a_mistake_is_told_with_line_place_and_remedy(key: str, line: str, at_line: int, path: str, message: str) -> None:
    found = problems(with_line(key, line))
    told = [problem for problem in found if problem.path == f"rules[0].{path}"]
    assert told, found
    assert message in told[0].message
    assert told[0].line == at_line
    assert told[0].rule_name in {"prod-readonly", ""}
    assert told[0].remedy or "write it like" in told[0].message


def test_an_empty_list_of_what_is_offered_is_told_with_its_rule() -> None:
    found = only_problem(with_line("permission_sets", "permission_sets: []"))
    assert (found.rule_name, found.path) == ("prod-readonly", "rules[0].permission_sets")


@pytest.mark.parametrize("name", ["Prod", "prod_readonly", "-prod", "prod-", "a" * 65, "#set", "prod readonly", "prod/1"])
def test_rule_names_are_plain(name: str) -> None:
    found = only_problem(GOOD.replace("name: prod-readonly", f'name: "{name}"'))
    assert found.path == "rules[0].name"
    assert "is not a rule name" in found.message


def test_every_mistake_is_told_at_once_in_order_of_lines() -> None:
    bad = GOOD.replace("kind: aws_account", "kind: aws").replace("8h", "8 ours").replace("CHG-[0-9]+", "CHG-[")
    assert [(problem.line, problem.path) for problem in problems(bad)] == [
        (3, "rules[0].kind"),
        (8, "rules[0].duration.max"),
        (10, "rules[0].ticket.pattern"),
    ]


def test_two_rules_with_one_name_are_told_at_the_second() -> None:
    found = only_problem(GOOD + GOOD.removeprefix("rules:\n"))
    assert (found.line, found.path) == (11, "rules[1].name")
    assert "stands already at line 2" in found.message


def test_a_deny_takes_no_limits() -> None:
    found = problems(GOOD.replace("effect: allow", "effect: deny"))
    assert [problem.path for problem in found] == ["rules[0].duration", "rules[0].approval", "rules[0].ticket"]


def test_a_deny_may_cover_every_permission_set() -> None:
    (rule,) = read_rules("rules: [{name: a, kind: aws_account, effect: deny, subjects: {groups: [/]}, targets: {ous: [/]}}]")
    assert rule.terms.offers == ()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("rules:\n\t- name: a", 2, "This is not YAML"),
        ("rules:\n  - name: a\n   kind: b", 3, "This is not YAML"),
        ("rules: [", 1, "This is not YAML"),
        ("a\nb: \x07", 2, "This is not YAML"),
        ("- a", 1, "keys with values are needed, not a list"),
        ("rules", 1, "keys with values are needed"),
        ("rules: {}", 1, "a list is needed"),
        ("rules:", 1, "a list is needed, not nothing"),
        ("rules: []\nversion: 1", 2, "“version” is not a key here"),
        ("rules: []\n---\nrules: []", 2, "one document"),
        ("rules: [&a x, 1]", 1, "Anchors"),
        ("rules:\n- !!python/object:os.system x", 2, "Tags"),
        ("rules: [{? [a] : b}]", 1, "a text is needed, not a list"),
        ("<<: {rules: []}", 1, "“<<” is not a key here"),
        (b"rules:\n  - \xff", 2, "UTF-8"),
        ("rules:\n- \ud800", 2, "UTF-8"),
        ("[" * 5000, 1, "nest"),
        ("{a: " * 30 + "1" + "}" * 30, 1, "nest"),
    ],
)
def test_what_is_not_a_rules_file_is_told_with_its_line(text: str | bytes, line: int, message: str) -> None:
    found = [problem for problem in problems(text) if message in problem.message]
    assert found
    assert found[0].line == line


def test_tabs_get_their_own_advice() -> None:
    assert only_problem("rules:\n\t- name: a").remedy == "Indent with spaces, never with tabs."


def test_an_alias_bomb_is_refused_before_it_is_built() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    # Built, it would have 2**60 items: this test would not end.
    assert "aliases" in problems(bomb)[0].message


def test_a_huge_file_is_refused_by_its_size() -> None:
    assert "at most 1 MB; this one has 10.0 MB" in only_problem("#" * 10_000_000).message


def test_a_file_has_at_most_1000_rules() -> None:
    one = GOOD.removeprefix("rules:\n")
    text = "rules:\n" + "".join(one.replace("prod-readonly", f"rule-{number}") for number in range(MOST_RULES + 1))
    assert only_problem(text).path == f"rules[{MOST_RULES}]"


def test_a_rule_fits_an_item() -> None:
    accounts = ", ".join(f"{number:012}" for number in range(2500))
    found = only_problem(with_line("targets", f"targets: {{accounts: [{accounts}]}}"))
    assert "at most 30000 bytes" in found.message
    assert "Use an OU or a tag" in found.remedy


def test_a_hopeless_file_is_given_up_after_100_mistakes() -> None:
    assert len(problems("rules: [" + "x, " * 500 + "]")) == 100


def test_the_demo_rules_say_what_the_demo_promises() -> None:
    demo = {rule.name: rule for rule in read_rules(DEMO.read_bytes())}
    self_service = demo["payments-dev"]
    assert (self_service.subjects.groups, self_service.terms.targets.ous) == (("/engineering/payments",), ("/Workloads/Dev",))
    assert "PowerUserAccess" in self_service.terms.offers
    assert (self_service.min_duration_seconds, self_service.max_duration_seconds) == (60, 4 * HOUR)
    assert not self_service.approval.required
    prod = demo["prod-readonly"]
    assert (prod.approval.quorum, prod.approval.approvers.groups, prod.max_duration_seconds) == (1, ("/security",), 8 * HOUR)
    assert (prod.ticket.required, prod.ticket.pattern) == (True, "CHG-[0-9]+")
    assert demo["security-accounts-closed"].effect is Effect.DENY
    assert demo["security-accounts-closed"].subjects.groups == ("/",)
    assert any(rule.approval.quorum == 2 for rule in demo.values())


def _reads_or_refuses(text: str | bytes) -> tuple[Rule, ...]:
    try:
        return read_rules(text)
    except InvalidRules:
        return ()


@given(st.one_of(st.text(), st.binary()))
@pytest.mark.deep
@settings(max_examples=examples(60))
@example("rules:\n- ? a\n  : b")
@example("%YAML 9.9\n---\nrules: []")
@example("\x85rules: []")
def test_any_text_is_rules_or_told_mistakes(text: str | bytes) -> None:
    _reads_or_refuses(text)


_KEYS = st.one_of(
    st.sampled_from(["rules", "name", "kind", "effect", "subjects", "targets", "permission_sets", "duration", "approval", "ticket"]),
    st.sampled_from(["groups", "users", "ous", "accounts", "tags", "min", "max", "required", "quorum", "approvers", "pattern"]),
)
_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.dates(),
        st.sampled_from(["allow", "deny", "aws_account", "/", "/a", "8h", "1m", "a@b.c", "prod", "CHG-[0-9]+", "((((", "1" * 12]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(_KEYS, st.text(max_size=5)), inner, max_size=6)),
    max_leaves=30,
)  # fmt: skip


@given(_VALUES)
@pytest.mark.deep
@settings(max_examples=examples(60))
def test_any_yaml_is_rules_or_told_mistakes(value: Any) -> None:
    _reads_or_refuses(yaml.safe_dump({"rules": value}))


@given(st.sampled_from(GOOD.splitlines()[1:]), st.text(max_size=3), st.integers(0, 60))
@pytest.mark.deep
@settings(max_examples=examples(60))
def test_any_slip_in_a_good_file_is_rules_or_told_mistakes(line: str, slip: str, at: int) -> None:
    _reads_or_refuses(GOOD.replace(line, line[:at] + slip + line[at:]))


@given(_VALUES, _KEYS)
@pytest.mark.deep
@settings(max_examples=examples(60))
def test_any_value_under_a_known_key_is_rules_or_told_mistakes(value: Any, key: str) -> None:
    content = yaml.safe_load(GOOD)
    content["rules"][0][key] = value
    for rule in _reads_or_refuses(yaml.safe_dump(content)):
        assert rule.effect is Effect.DENY or 60 <= rule.min_duration_seconds <= rule.default_duration_seconds <= rule.max_duration_seconds
        assert rule.subjects.groups or rule.subjects.users
        assert rule.terms.targets.ous or rule.terms.targets.accounts or rule.terms.targets.tags
        assert not rule.approval.required or (
            rule.approval.quorum >= 1 and (rule.approval.approvers.groups or rule.approval.approvers.users)
        )


@pytest.mark.parametrize("duration", ["9999999d", "999999999d999999999h"])
@pytest.mark.parametrize("key", ["min", "default", "max"])
def test_an_absurd_duration_is_a_mistake_of_its_line(key: str, duration: str) -> None:
    written = {"max": "8h", key: duration}

    found = problems(with_line("duration", f"duration: {{{', '.join(f'{name}: {value}' for name, value in written.items())}}}"))

    assert [problem.path for problem in found] == [f"rules[0].duration.{key}"]
    assert "is more: write a shorter one" in found[0].message


@pytest.mark.parametrize(("line", "ends_with"), [("", "membership"), ("ends_with: membership", "membership"), ("ends_with: time", "time")])
def test_a_new_rule_ends_with_the_membership_unless_it_says_otherwise(line: str, ends_with: str) -> None:
    (rule,) = read_rules(f"{GOOD}    {line}\n")

    assert rule.ends_with == ends_with
    assert rule.serves_by_membership is (ends_with == "membership")


def test_the_longest_with_extensions_is_the_longest_unless_more_is_given() -> None:
    (without,), (given_more,) = read_rules(GOOD), read_rules(with_line("duration", "duration: {max: 8h, max_total: 1d}"))

    assert (without.total_seconds, given_more.total_seconds) == (8 * HOUR, 24 * HOUR)
    assert (without.longest_after(3 * HOUR), given_more.longest_after(20 * HOUR)) == (5 * HOUR, 4 * HOUR)


@pytest.mark.parametrize(
    ("key", "line", "path", "message"),
    [
        ("duration", "duration: {max: 8h, max_total: 4h}", "duration.max_total", "The longest with extensions, 4 h, is shorter than"),
        ("duration", "duration: {max: 8h, max_total: 366d}", "duration.max_total", "The longest possible is 365 d."),
        ("permission_sets", "permission_sets: [ReadOnlyAccess]\n    ends_with: never", "ends_with", "“never” is not possible here."),
    ],
)
def test_mistakes_of_the_limits_of_a_chain(key: str, line: str, path: str, message: str) -> None:
    problem = only_problem(with_line(key, line))

    assert problem.path == f"rules[0].{path}"
    assert problem.message.startswith(message)


def test_a_deny_ends_nothing() -> None:
    deny = "rules:\n  - {name: x, kind: aws_account, effect: deny, subjects: {groups: [/]}, targets: {ous: [/]}, ends_with: membership}\n"

    assert only_problem(deny).path == "rules[0].ends_with"


def test_what_a_rule_of_an_earlier_version_does_not_say_is_no_part_of_its_hash() -> None:
    (rule,) = read_rules(GOOD)
    stored = dataclasses.replace(rule, ends_with=None)

    assert hash_of(stored) == "db7b97aecc31283d4e3b47933c2c3fb5b2b929eeb6ca153ff70aa437f7d18c7f"
    assert hash_of(rule) != hash_of(stored)
    assert not stored.serves_by_membership
