"""What an address and a path look like, which groups and roles count, and who may do what."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from accessportal.directory.policy.rights import may_move, may_see_person, may_with_group, may_with_people
from accessportal.directory.policy.tree import counted_groups, effective_roles, path_ancestors, role_at
from accessportal.directory.policy.words import clean_description, clean_email, clean_group_id, clean_name, is_group_id, key_of
from accessportal.directory.states import PERMANENT, Claim, EffectiveRole, Group, GroupRole, GroupVerb, Membership, PersonVerb, State
from accessportal.kernel.actors import Actor, Role, person, system
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.lasting import FOR_A_TIME
from tests.directory.conftest import NOW


@pytest.mark.parametrize("email", ["alice@example.com", "A.B+c@Sub.Example.co", "o'neil@example.com", "a@b.c"])
def test_usual_addresses_are_accepted(email: str) -> None:
    assert clean_email(f"  {email} ") == email


@pytest.mark.parametrize(
    "email",
    [
        "",
        "alice",
        "alice@",
        "@example.com",
        "alice@localhost",
        "a b@example.com",
        "alice@example.com\nbob@example.com",
        "alice@@example.com",
        ".alice@example.com",
        "/alice@example.com",
        "alice@-example.com",
        "\u212aim@example.com",
        "a\ud800@example.com",
        "a" * 65 + "@example.com",
        "alice@" + "a." * 130 + "com",
        "x" * 1_000_000,
    ],
)
def test_what_is_no_address_is_refused_in_few_words(email: str) -> None:
    with pytest.raises(InvalidRequest, match="write it like") as refused:
        clean_email(email)
    assert refused.value.field == "email"
    assert len(refused.value.message) < 250


@pytest.mark.parametrize("group_id", ["/eng", "/eng/payments", "/usa/north-west_2.1", "/_internal"])
def test_paths_are_accepted(group_id: str) -> None:
    assert clean_group_id(group_id) == group_id


@pytest.mark.parametrize(
    "group_id", ["", "/", "eng", "/eng/", "//eng", "/Eng", "/eng pay", "/eng/../security", "/.", "/é", "/a\n", "/a" * 59]
)
def test_what_is_no_path_is_refused(group_id: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        clean_group_id(group_id)
    assert refused.value.field == "group_id"


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "x" * 201, "a\u202eb"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        clean_name(name)
    assert refused.value.field == "name"


@pytest.mark.parametrize("name", ["علی\u200cرضا", "ශ්\u200dරී", "👩\u200d👧 Families", "José\u00a0Peña"])
def test_names_of_every_script_and_from_every_spreadsheet_are_accepted(name: str) -> None:
    assert clean_name(name) == name.replace("\u00a0", " ")


def test_a_name_is_refused_by_the_character_that_is_wrong() -> None:
    with pytest.raises(InvalidRequest, match=r"U\+202E"):
        clean_name("Ali\u202ece")
    with pytest.raises(InvalidRequest, match="1 to 200"):
        clean_name("\u200d")


@pytest.mark.parametrize("description", ["x" * 1001, "a\ud800"])
def test_what_is_no_description_is_refused(description: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        clean_description(description)
    assert refused.value.field == "description"


def test_what_earlier_versions_took_is_still_found() -> None:
    long_path, long_address = "/a" * 100, "a" * 60 + "@" + "b" * 60 + ".example.com"
    assert is_group_id(long_path)
    assert key_of(long_address) == long_address
    with pytest.raises(InvalidRequest):
        clean_group_id(long_path)
    with pytest.raises(InvalidRequest, match="128"):
        clean_email(long_address)


def test_where_a_path_puts_a_group() -> None:
    assert path_ancestors("/a/b/c") == ("/", "/a", "/a/b")
    assert path_ancestors("/a") == ("/",)
    assert path_ancestors("/") == ()


def _group(group_id: str, *ancestors: str, state: State = State.ENABLED) -> Group:
    return Group(group_id, group_id, "", state, ancestors=ancestors or path_ancestors(group_id))


def _membership(group_id: str, *claims: Claim) -> Membership:
    return Membership("alice@example.com", group_id, claims or (_claim(GroupRole.READER),), created_at=NOW)


def _claim(role: GroupRole, *, minutes: int | None = None) -> Claim:
    """``minutes`` from now it ends."""
    if minutes is None:
        return Claim(PERMANENT, role)
    return Claim(f"request-{minutes}", role, ends_at=NOW + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("member_of", "enabled", "disabled", "counted"),
    [
        (["/a/b"], ["/a", "/a/b"], [], {"/a", "/a/b"}),
        (["/a/b"], ["/", "/a", "/a/b"], [], {"/", "/a", "/a/b"}),
        (["/a/b"], ["/a"], ["/a/b"], set()),
        (["/a/b"], ["/a"], [], set()),
        (["/a/b/c"], ["/a", "/a/b/c"], ["/a/b"], {"/a", "/a/b/c"}),
        (["/a/b"], ["/a/b"], [], {"/a/b"}),
        (["/a/b", "/c"], ["/a", "/c"], ["/a/b"], {"/c"}),
        ([], ["/a"], [], set()),
    ],
)
def test_which_groups_count(member_of: list[str], enabled: list[str], disabled: list[str], counted: set[str]) -> None:
    groups = {one: _group(one) for one in enabled} | {one: _group(one, state=State.DISABLED) for one in disabled}
    assert counted_groups([_membership(one) for one in member_of], groups=groups, now=NOW).keys() == counted


def test_a_moved_group_counts_where_it_stands() -> None:
    groups = {one.group_id: one for one in (_group("/a"), _group("/c"), _group("/a/b", "/", "/c"))}
    assert counted_groups([_membership("/a/b")], groups=groups, now=NOW).keys() == {"/a/b", "/c"}


@pytest.mark.parametrize(
    ("claims", "now_role", "later_role", "ends_in"),
    [
        ([_claim(GroupRole.READER)], GroupRole.READER, GroupRole.READER, None),
        ([_claim(GroupRole.ADMIN, minutes=10)], GroupRole.ADMIN, None, 10),
        ([_claim(GroupRole.READER), _claim(GroupRole.ADMIN, minutes=10)], GroupRole.ADMIN, GroupRole.READER, 10),
        ([_claim(GroupRole.READER, minutes=90), _claim(GroupRole.ADMIN, minutes=10)], GroupRole.ADMIN, GroupRole.READER, 10),
        ([_claim(GroupRole.ADMIN, minutes=5), _claim(GroupRole.ADMIN, minutes=10)], GroupRole.ADMIN, None, 10),
        ([_claim(GroupRole.ADMIN), _claim(GroupRole.READER, minutes=10)], GroupRole.ADMIN, GroupRole.ADMIN, None),
        ([_claim(GroupRole.ADMIN, minutes=0)], None, None, None),
    ],
)
def test_a_membership_gives_the_highest_of_its_claims_until_they_end(
    claims: list[Claim], now_role: GroupRole | None, later_role: GroupRole | None, ends_in: int | None
) -> None:
    memberships, groups = [_membership("/a", *claims)], {"/a": _group("/a")}

    def role(minutes: int) -> GroupRole | None:
        return role_at(memberships, groups=groups, group=_group("/a/b"), now=NOW + timedelta(minutes=minutes))

    assert (role(0), role(10)) == (now_role, later_role)
    effective = effective_roles(memberships, groups=groups, now=NOW)
    assert [one.ends_at for one in effective] == ([] if now_role is None else [ends_in and NOW + timedelta(minutes=ends_in)])


@pytest.mark.parametrize(
    ("on", "role"),
    [("/", None), ("/a", GroupRole.READER), ("/a/b", GroupRole.ADMIN), ("/a/b/c", GroupRole.ADMIN), ("/ab", None)],
)
def test_roles_reach_downward(on: str, role: GroupRole | None) -> None:
    memberships = [_membership("/a"), _membership("/a/b", _claim(GroupRole.ADMIN))]
    groups = {one: _group(one) for one in ("/", "/a", "/a/b", "/a/b/c", "/ab")}
    assert role_at(memberships, groups=groups, group=groups[on], now=NOW) is role


def test_a_disabled_group_gives_nothing_but_is_reached_from_above() -> None:
    groups = {"/a": _group("/a"), "/a/b": _group("/a/b", state=State.DISABLED), "/a/b/c": _group("/a/b/c")}
    own = [_membership("/a/b", _claim(GroupRole.ADMIN))]
    assert role_at(own, groups=groups, group=groups["/a/b/c"], now=NOW) is None
    assert role_at([_membership("/a", _claim(GroupRole.ADMIN))], groups=groups, group=groups["/a/b"], now=NOW) is GroupRole.ADMIN


PORTAL = system("load_demo")
OPERATOR = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
AUDITOR = person("ana@example.com", roles=frozenset({Role.AUDITOR}))
ALICE = person("alice@example.com")
LATER = NOW + timedelta(hours=1)
CHANGES = [verb for verb in GroupVerb if verb not in {GroupVerb.SEE_MEMBERS, GroupVerb.MOVE, GroupVerb.LEAVE}]


def _right(role: GroupRole | None, ends_at: datetime | None = None) -> EffectiveRole | None:
    return None if role is None else EffectiveRole("/", role, ends_at)


def _rights(roles: dict[str, GroupRole], *ending: str) -> dict[str, EffectiveRole]:
    return {group_id: EffectiveRole("/", role, LATER if group_id in ending else None) for group_id, role in roles.items()}


@pytest.mark.parametrize("verb", CHANGES)
@pytest.mark.parametrize(
    ("actor", "role", "allowed"),
    [
        (PORTAL, None, True),
        (ALICE, GroupRole.ADMIN, True),
        (ALICE, GroupRole.CONTRIBUTOR, False),
        (ALICE, GroupRole.READER, False),
        (ALICE, None, False),
        (OPERATOR, None, False),
        (AUDITOR, None, False),
    ],
)
def test_only_admins_change_a_group(verb: GroupVerb, actor: Actor, role: GroupRole | None, *, allowed: bool) -> None:
    decision = may_with_group(verb, group=_group("/a"), right=_right(role), actor=actor)
    assert decision.allowed is allowed
    assert decision.reason


@pytest.mark.parametrize(
    ("actor", "role", "allowed"),
    [
        (PORTAL, None, True),
        (OPERATOR, None, True),
        (AUDITOR, None, True),
        (ALICE, GroupRole.READER, True),
        (ALICE, None, False),
    ],
)
def test_whoever_has_a_role_sees_the_members(actor: Actor, role: GroupRole | None, *, allowed: bool) -> None:
    assert may_with_group(GroupVerb.SEE_MEMBERS, group=_group("/a"), right=_right(role), actor=actor).allowed is allowed


@pytest.mark.parametrize("verb", [GroupVerb.DISABLE, GroupVerb.ENABLE, GroupVerb.DELETE])
def test_the_root_stays(verb: GroupVerb) -> None:
    assert not may_with_group(verb, group=_group("/"), right=_right(GroupRole.ADMIN), actor=PORTAL).allowed
    assert not may_move(_group("/"), parents=["/a"], rights=_rights({"/a": GroupRole.ADMIN}), actor=PORTAL).allowed


@pytest.mark.parametrize(
    ("roles", "allowed"),
    [
        ({"/a": GroupRole.ADMIN, "/b": GroupRole.ADMIN}, True),
        ({"/a": GroupRole.ADMIN}, False),
        ({"/b": GroupRole.ADMIN}, False),
        ({"/a": GroupRole.ADMIN, "/b": GroupRole.CONTRIBUTOR}, False),
    ],
)
def test_moving_needs_both_parents(roles: dict[str, GroupRole], *, allowed: bool) -> None:
    assert may_move(_group("/a/x"), parents=["/a", "/b"], rights=_rights(roles), actor=ALICE).allowed is allowed


@pytest.mark.parametrize("ending", ["/a", "/b"])
def test_moving_needs_both_parents_without_an_end(ending: str) -> None:
    rights = _rights({"/a": GroupRole.ADMIN, "/b": GroupRole.ADMIN}, ending)
    decision = may_move(_group("/a/x"), parents=["/a", "/b"], rights=rights, actor=ALICE)
    assert (decision.allowed, decision.code) == (False, FOR_A_TIME)
    assert f"You are admin of {ending} only until 2026-" in decision.reason


@pytest.mark.parametrize("verb", CHANGES)
def test_an_admin_for_a_time_leaves_nothing_on_a_group(verb: GroupVerb) -> None:
    decision = may_with_group(verb, group=_group("/a"), right=_right(GroupRole.ADMIN, LATER), actor=ALICE)
    assert decision.allowed is (verb in {GroupVerb.GRANT, GroupVerb.REVOKE}), "what these two do is judged by its own end"


@pytest.mark.parametrize("verb", PersonVerb)
def test_an_admin_of_the_root_for_a_time_changes_nobody(verb: PersonVerb) -> None:
    decision = may_with_people(verb, right=_right(GroupRole.ADMIN, LATER), actor=ALICE)
    assert (decision.allowed, decision.code) == (False, FOR_A_TIME)


@pytest.mark.parametrize("verb", PersonVerb)
@pytest.mark.parametrize(
    ("actor", "root_role", "allowed"),
    [
        (PORTAL, None, True),
        (ALICE, GroupRole.ADMIN, True),
        (ALICE, GroupRole.CONTRIBUTOR, False),
        (OPERATOR, None, False),
    ],
)
def test_only_admins_of_the_root_change_people(verb: PersonVerb, actor: Actor, root_role: GroupRole | None, *, allowed: bool) -> None:
    assert may_with_people(verb, right=_right(root_role), actor=actor).allowed is allowed


@pytest.mark.parametrize(
    ("actor", "is_admin", "allowed"),
    [(ALICE, False, True), (person("bob@example.com"), True, True), (person("mallory@example.com"), False, False), (OPERATOR, False, True)],
)
def test_who_sees_a_person(actor: Actor, *, is_admin: bool, allowed: bool) -> None:
    assert may_see_person("alice@example.com", is_admin_of_theirs=is_admin, actor=actor).allowed is allowed
