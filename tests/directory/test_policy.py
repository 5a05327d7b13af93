"""What an address and a path look like, and which groups count."""

from __future__ import annotations

import pytest

from accessportal.directory import policy
from accessportal.directory.states import Group, GroupRole, Membership, State
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.errors import InvalidRequest


@pytest.mark.parametrize("email", ["alice@example.com", "A.B+c@Sub.Example.co", "o'neil@example.com", "a@b.c"])
def test_usual_addresses_are_accepted(email: str) -> None:
    assert policy.clean_email(f"  {email} ") == email


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
        policy.clean_email(email)
    assert refused.value.field == "email"
    assert len(refused.value.message) < 250


@pytest.mark.parametrize("group_id", ["/eng", "/eng/payments", "/usa/north-west_2.1", "/_internal"])
def test_paths_are_accepted(group_id: str) -> None:
    assert policy.clean_group_id(group_id) == group_id


@pytest.mark.parametrize(
    "group_id", ["", "/", "eng", "/eng/", "//eng", "/Eng", "/eng pay", "/eng/../security", "/.", "/é", "/a\n", "/a" * 129]
)
def test_what_is_no_path_is_refused(group_id: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        policy.clean_group_id(group_id)
    assert refused.value.field == "group_id"


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "x" * 201, "a\u202eb"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        policy.clean_name(name)
    assert refused.value.field == "name"


@pytest.mark.parametrize("description", ["x" * 1001, "a\ud800"])
def test_what_is_no_description_is_refused(description: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        policy.clean_description(description)
    assert refused.value.field == "description"


def test_the_tree_is_in_the_path() -> None:
    assert policy.with_ancestors("/a/b/c") == ("/a", "/a/b", "/a/b/c")
    assert policy.parent_of("/a/b") == "/a"
    assert policy.parent_of("/a") is None
    assert policy.is_below("/eng/a", "/eng")
    assert not policy.is_below("/engineering", "/eng")
    assert not policy.is_below("/eng", "/eng")


@pytest.mark.parametrize(
    ("member_of", "enabled", "disabled", "counted"),
    [
        (["/a/b"], ["/a", "/a/b"], [], {"/a", "/a/b"}),
        (["/a/b"], ["/a"], ["/a/b"], set()),
        (["/a/b"], ["/a"], [], set()),
        (["/a/b/c"], ["/a", "/a/b/c"], ["/a/b"], {"/a", "/a/b/c"}),
        (["/a/b"], ["/a/b"], [], {"/a/b"}),
        (["/a/b", "/c"], ["/a", "/c"], ["/a/b"], {"/c"}),
        ([], ["/a"], [], set()),
    ],
)
def test_which_groups_count(member_of: list[str], enabled: list[str], disabled: list[str], counted: set[str]) -> None:
    groups = {one: Group(one, one, "", State.ENABLED) for one in enabled} | {one: Group(one, one, "", State.DISABLED) for one in disabled}
    memberships = [Membership("alice@example.com", one, GroupRole.READER) for one in member_of]
    assert policy.counted_groups(memberships, groups) == counted


def test_only_operators_and_the_portal_keep_the_directory() -> None:
    assert policy.may_manage(system("load_demo")).allowed
    assert policy.may_manage(person("olga@example.com", roles=frozenset({Role.OPERATOR}))).allowed
    assert not policy.may_manage(person("ana@example.com", roles=frozenset({Role.AUDITOR}))).allowed
    assert not policy.may_manage(person("mallory@example.com")).allowed
