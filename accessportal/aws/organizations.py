"""AWS Organizations, read whole: the accounts, where they are in the tree, and their tags."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from accessportal.aws.clients import organizations_client
from accessportal.aws.errors import OutsideError, Transient, sorted_call

_TAG_READERS = 4
# An account whose tags can't be read is one account; this many without any answer is an outage, and no catalog.
_LOST_ANSWERS_OF_AN_OUTAGE = 20


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


def read_accounts() -> list[OrganizationAccount]:
    """Read every account of the organization, closed ones too, once each, from the whole tree."""
    client = organizations_client()
    management = sorted_call(client.describe_organization)["Organization"]["MasterAccountId"]
    found: dict[str, OrganizationAccount] = {}
    for parent_id, ou_path in _walk_tree():
        for page in sorted_call(list, client.get_paginator("list_accounts_for_parent").paginate(ParentId=parent_id)):
            for account in page["Accounts"]:
                # AWS retires Status for State in September 2026; older answers have Status alone.
                status = account.get("State") or account.get("Status") or "UNKNOWN"
                found[account["Id"]] = OrganizationAccount(
                    account_id=account["Id"],
                    name=account.get("Name", account["Id"]),
                    email=account.get("Email", ""),
                    status=status,
                    ou_path=ou_path,
                    is_management=account["Id"] == management,
                )
    return list(found.values())


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


def _walk_tree() -> Iterator[tuple[str, str]]:
    """Id and path of the root and of every organizational unit, to any depth."""
    client = organizations_client()
    ahead: list[tuple[str, str]] = []
    for page in sorted_call(list, client.get_paginator("list_roots").paginate()):
        ahead.extend((root["Id"], "/") for root in page["Roots"])
    while ahead:
        parent_id, path = ahead.pop()
        yield parent_id, path
        for units in sorted_call(list, client.get_paginator("list_organizational_units_for_parent").paginate(ParentId=parent_id)):
            ahead.extend((unit["Id"], f"{path.rstrip('/')}/{_escaped(unit['Name'])}") for unit in units["OrganizationalUnits"])


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")
