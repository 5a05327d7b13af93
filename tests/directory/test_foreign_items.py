"""What another program wrote badly stops those who need that very item, who are told which one it is; nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accessportal.directory import queries
from accessportal.directory.store.reading import count_groups, get_memberships_and_people, get_people, page_of_members
from accessportal.directory.store.whole import read_table
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page, every
from tests.directory.conftest import NOW, OLGA, table

ALICE, BOB, PAYMENTS, SECURITY = "alice@example.com", "bob@example.com", "/engineering/payments", "/security"
PERSON = {"pk": f"U:{ALICE}", "sk": f"U:{ALICE}"}
GROUP = {"pk": f"G:{PAYMENTS}", "sk": f"G:{PAYMENTS}"}
MEMBERSHIP = {"pk": f"U:{ALICE}", "sk": f"G:{PAYMENTS}"}

WAYS: list[tuple[dict[str, str], str, Any]] = [
    *((key, "state", value) for key in (PERSON, GROUP) for value in (None, "", "suspended", 1)),
    *((key, "createdAt", value) for key in (PERSON, GROUP, MEMBERSHIP) for value in ("yesterday", 1)),
    (PERSON, "createdAt", None),
    *((key, "version", "two") for key in (PERSON, GROUP)),
    (GROUP, "ancestors", "/"),
    (MEMBERSHIP, "claims", "permanent"),
    (MEMBERSHIP, "claims", {"permanent": {"role": "owner"}}),
    (MEMBERSHIP, "claims", {"permanent": {}}),
    (MEMBERSHIP, "claims", None),
]
READS: dict[str, list[Callable[[], object]]] = {
    PERSON["sk"]: [
        lambda: queries.find_person(email=ALICE),
        lambda: queries.find_person_with_groups(email=ALICE, now=NOW),
        lambda: get_people([ALICE, BOB]),
    ],
    GROUP["sk"]: [
        lambda: queries.find_group(group_id=PAYMENTS),
        lambda: queries.find_groups(group_ids=[PAYMENTS, SECURITY]),
        lambda: queries.groups_of(email=ALICE, now=NOW),
    ],
}
MEMBERSHIP_READS: list[Callable[[], object]] = [
    lambda: queries.find_membership(email=ALICE, group_id=PAYMENTS),
    lambda: queries.groups_of(email=ALICE, now=NOW),
    lambda: get_memberships_and_people([(ALICE, PAYMENTS), (BOB, SECURITY)], []),
]
LISTS: dict[str, Callable[[], Page[Any]]] = {
    PERSON["sk"] + PERSON["pk"]: queries.list_people,
    GROUP["sk"] + GROUP["pk"]: queries.list_groups,
    MEMBERSHIP["sk"] + MEMBERSHIP["pk"]: lambda: queries.list_members(group_id=PAYMENTS, actor=OLGA, now=NOW),
}


def spoil(key: dict[str, str], name: str, value: Any) -> None:
    """As another program could. A membership without ``claims`` has its ``role`` spoilt: that is what is read then."""
    item = table().get_item(Key=key)["Item"]
    item.pop(name, None)
    if value is not None:
        item[name] = value
    elif name == "claims":
        item["role"] = "owner"
    table().put_item(Item=item)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(("key", "name", "value"), WAYS)
def test_what_can_not_be_read_is_named_and_the_rest_is_there(key: dict[str, str], name: str, value: Any) -> None:
    spoil(key, name, value)

    for read in (*(MEMBERSHIP_READS if key is MEMBERSHIP else READS[key["sk"]]), read_table):
        with pytest.raises(Unavailable, match=key["pk"]) as told:
            read()
        assert told.value.code == "item_unreadable"
    page = LISTS[key["sk"] + key["pk"]]()
    assert [one.key for one in page.unreadable] == [", ".join(dict.fromkeys(key.values()))]
    assert len(page.items) > 0 or key is MEMBERSHIP

    assert queries.groups_of(email=BOB, now=NOW) == {"/", SECURITY}
    assert queries.find_group(group_id=SECURITY) is not None
    assert [one.person for one in every(lambda cursor: page_of_members(SECURITY, cursor=cursor, limit=5))] == [BOB]


@pytest.mark.usefixtures("directory")
def test_a_counter_that_is_no_number_is_named() -> None:
    table().put_item(Item={"pk": "C:groups", "sk": "C:groups"})

    with pytest.raises(Unavailable, match="C:groups") as told:
        count_groups()
    assert told.value.code == "item_unreadable"
