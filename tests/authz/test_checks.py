"""Chains, sets and deadlines on plain records, without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from accessportal.authz.policy.checks import MOST_IN_LEVEL, Answer, Why, answer_by, answer_by_any, check_pattern, find_chain, matches
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.states import Relationship, RelationType
from accessportal.kernel.errors import InvalidRequest

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
ACME = read_scope("tenant:acme")


def link(
    subject: str, target: str, kind: RelationType = RelationType.TRUST, *, relation: str = "trusts", minutes: float | None = 60
) -> Relationship:
    ends = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Relationship(ACME, subject, relation, target, kind, "olga@example.com", NOW, ends)


def ask(links: Sequence[Relationship], subject: str, target: str, *, depth: int = 8, relation: str = "trusts") -> tuple[Answer, list[int]]:
    levels: list[int] = []

    def links_of(subjects: Sequence[str]) -> Mapping[str, Sequence[Relationship]]:
        levels.append(len(subjects))
        return {one: [each for each in links if each.subject == one] for one in subjects}

    return find_chain(subject, relation, target, links_of=links_of, now=NOW, depth=depth), levels


def way(answer: Answer) -> list[str]:
    return [f"{one.subject}>{one.object}" for one in answer.by if isinstance(one, Relationship)]


@pytest.mark.parametrize("kind", list(RelationType))
def test_of_several_links_each_must_be_of_trust_or_membership(kind: RelationType) -> None:
    carries = kind in (RelationType.TRUST, RelationType.MEMBERSHIP)

    assert ask([link("a", "b", kind)], "a", "b")[0].is_allowed
    for links in ([link("a", "b", kind), link("b", "c")], [link("a", "b"), link("b", "c", kind)]):
        assert ask(links, "a", "c")[0].is_allowed is carries


def test_two_and_three_levels() -> None:
    links = [link("leaf", "middle"), link("middle", "root"), link("root", "anchor")]

    assert way(ask(links, "leaf", "root")[0]) == ["leaf>middle", "middle>root"]
    answer, levels = ask(links, "leaf", "anchor")
    assert way(answer) == ["leaf>middle", "middle>root", "root>anchor"]
    assert levels == [1, 1, 1]


def test_the_shortest_way_is_told() -> None:
    links = [link("a", "b"), link("b", "c"), link("c", "d"), link("a", "x"), link("x", "d")]

    assert way(ask(links, "a", "d")[0]) == ["a>x", "x>d"]


@pytest.mark.parametrize("minutes", [0, -1])
def test_a_link_that_is_over_carries_nothing(minutes: float) -> None:
    links = [link("a", "b"), link("b", "c", minutes=minutes)]

    assert ask(links, "a", "c")[0] == Answer(Why.NONE)


def test_an_answer_holds_until_its_first_link_ends() -> None:
    answer = ask([link("a", "b", minutes=None), link("b", "c", minutes=5), link("c", "d", minutes=9)], "a", "d")[0]

    assert answer.until == NOW + timedelta(minutes=5)


def test_another_relation_is_no_link() -> None:
    assert not ask([link("a", "b"), link("b", "c", relation="likes")], "a", "c")[0].is_allowed


def test_a_circle_is_a_plain_no() -> None:
    answer, levels = ask([link("a", "b"), link("b", "c"), link("c", "a")], "a", "z")

    assert (answer, levels) == (Answer(Why.NONE), [1, 1, 1])


def test_too_deep_is_a_no_with_the_reason() -> None:
    links = [link(str(step), str(step + 1)) for step in range(9)]

    assert ask(links, "0", "8")[0].is_allowed
    assert ask(links, "0", "9")[0] == Answer(Why.TOO_DEEP)
    assert ask(links, "0", "9", depth=9)[0].is_allowed


def test_too_wide_is_a_no_with_the_reason() -> None:
    links = [link("a", f"b{number}") for number in range(MOST_IN_LEVEL + 1)]

    assert ask(links, "a", "z")[0] == Answer(Why.TOO_WIDE)


def test_every_match_is_looked_at_and_the_longest_answers() -> None:
    over, short, long = link("a", "d/1", minutes=-5), link("a", "d/2", minutes=5), link("a", "d/3", minutes=50)

    assert answer_by_any([over, short, long], now=NOW).by == (long,)
    assert answer_by_any([over, link("a", "d/9", minutes=None), long], now=NOW).until is None
    assert answer_by_any([over], now=NOW) == Answer(Why.NONE)


def test_one_record_answers_until_its_end() -> None:
    one = link("a", "b", minutes=1)

    assert answer_by(one, now=NOW) == Answer(Why.GRANTED, (one,))
    assert answer_by(one, now=NOW + timedelta(minutes=1)) == Answer(Why.NONE)
    assert answer_by(None, now=NOW) == Answer(Why.NONE)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("doc-1", "doc-1", True),
        ("doc-1", "doc-12", False),
        ("docs/*", "docs/1", True),
        ("docs/*", "docs/a/b", True),
        ("docs/*", "docs", False),
        ("docs/*", "docs/", False),
        ("docs/*", "docs2/1", False),
        ("https://api.example.com/*", "https://api.example.com/data", True),
        ("https://api.example.com/*", "https://api.example.com.evil.org/data", False),
    ],
)
def test_a_wildcard_stands_for_whole_parts_of_a_path(pattern: str, name: str, expected: bool) -> None:
    assert matches(check_pattern(pattern, field="object"), name) is expected


@pytest.mark.parametrize("pattern", ["*", "/*", "doc*", "docs/*/x", "docs/**", "*/docs", "docs/1*"])
def test_a_wildcard_elsewhere_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_pattern(pattern, field="object")

    assert refused.value.field == "object"
