"""AWS Organizations: the accounts, where they are in the tree, and their tags."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from accessportal.aws.clients import account_client, organizations_client
from accessportal.aws.errors import Gone, OutsideError, Refused, Transient, sorted_call

_TAG_READERS = 4
# An account whose tags can't be read is one account; this many without any answer is an outage, and no catalog.
_LOST_ANSWERS_OF_AN_OUTAGE = 20
PARENTS_UNCLEAR = "ParentsUnclear"
"""The code of the refusal of a tree that is none."""


@dataclass(frozen=True, slots=True)
class OrganizationAccount:
    """``ou_path`` is ``/`` for the root, else ``/Workloads/Prod``; ``%`` and ``/`` inside a name are percent-escaped, so that a
    unit can't be named into a tree that it is not in."""

    account_id: str
    name: str
    email: str
    status: str
    ou_path: str
    is_management: bool


def read_accounts(*, below: str = "") -> list[OrganizationAccount]:
    """Read every account of the organization, closed ones too, once each, from the whole tree; or what lies ``below`` an organizational
    unit, where paths begin then. :raises Refused: when there is no such unit."""
    client = organizations_client()
    management = read_management_account()
    found: dict[str, OrganizationAccount] = {}
    for parent_id, ou_path in _walk_tree([(below, "/")] if below else _roots()):
        for page in sorted_call(list, client.get_paginator("list_accounts_for_parent").paginate(ParentId=parent_id)):
            for account in page["Accounts"]:
                found[account["Id"]] = OrganizationAccount(
                    account_id=account["Id"],
                    name=account.get("Name", account["Id"]),
                    email=account.get("Email", ""),
                    status=_status(account),
                    ou_path=ou_path,
                    is_management=account["Id"] == management,
                )
    return list(found.values())


def read_management_account() -> str:
    """Read the id of the organization's management account."""
    return sorted_call(organizations_client().describe_organization)["Organization"]["MasterAccountId"]


def read_ancestors(account_id: str) -> tuple[str, ...]:
    """Read the ids of the organizational units that the account is in, the nearest first, and of the root, which is the last. :raises Gone:
    when it is not in the organization."""
    found: list[str] = []
    child = account_id
    while True:
        pages = sorted_call(list, organizations_client().get_paginator("list_parents").paginate(ChildId=child))
        parents = [parent for page in pages for parent in page["Parents"]]
        if len(parents) != 1 or parents[0]["Id"] in found:
            raise Refused(PARENTS_UNCLEAR, f"{child} has {len(parents)} parents, or is in itself; an organization's tree has one")
        child = parents[0]["Id"]
        found.append(child)
        if parents[0]["Type"] == "ROOT":
            return tuple(found)


def is_active(account_id: str) -> bool:
    """Whether the account is open and in the organization; one call, sent once."""
    try:
        return _status(sorted_call(account_client().describe_account, AccountId=account_id)["Account"]) == "ACTIVE"
    except Gone:
        return False


def read_tags(account_ids: Collection[str]) -> Mapping[str, Mapping[str, str] | None]:
    """Read the tags of each account, one call each; ``None`` where they could not be read. A few run at a time, and slow down together when
    AWS throttles. :raises Transient: when so many got no answer that it is an outage."""
    client = organizations_client()
    lost: list[Transient] = []

    def read(account_id: str) -> Mapping[str, str] | None:
        if len(lost) >= _LOST_ANSWERS_OF_AN_OUTAGE:
            return None
        try:
            pages = sorted_call(list, client.get_paginator("list_tags_for_resource").paginate(ResourceId=account_id))
        except Transient as error:
            lost.append(error)
            return None
        except OutsideError:
            return None
        return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

    with ThreadPoolExecutor(max_workers=_TAG_READERS, thread_name_prefix="tags") as readers:
        tags = dict(zip(account_ids, readers.map(read, account_ids), strict=True))
    if len(lost) >= _LOST_ANSWERS_OF_AN_OUTAGE:
        raise lost[-1]
    return tags


def _status(account: Mapping[str, Any]) -> str:
    # AWS retires Status for State in September 2026; older answers have Status alone.
    return str(account.get("State") or account.get("Status") or "UNKNOWN")


def _roots() -> list[tuple[str, str]]:
    pages = sorted_call(list, organizations_client().get_paginator("list_roots").paginate())
    return [(root["Id"], "/") for page in pages for root in page["Roots"]]


def _walk_tree(ahead: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Id and path of what is ``ahead`` and of every organizational unit in it, to any depth."""
    client = organizations_client()
    while ahead:
        parent_id, path = ahead.pop()
        yield parent_id, path
        for units in sorted_call(list, client.get_paginator("list_organizational_units_for_parent").paginate(ParentId=parent_id)):
            ahead.extend((unit["Id"], f"{path.rstrip('/')}/{_escaped(unit['Name'])}") for unit in units["OrganizationalUnits"])


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")
