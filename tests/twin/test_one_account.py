"""One account of the organization: where it is, and whether it is open."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.aws.errors import Gone, Refused
from accessportal.aws.organizations import is_active, read_accounts, read_ancestors, read_management_account
from tests.fixtures_twin import MANAGEMENT_ACCOUNT, Twin, when


@pytest.mark.parametrize("caller", ["management", "delegated"])
def test_the_units_above_it_are_read_up_to_the_root(twin: Twin, caller: str) -> None:
    twin.settings.change({"caller": caller})
    units = twin.organizational_units
    expected = (units["/Workloads/Prod/Payments"], units["/Workloads/Prod"], units["/Workloads"], units["/"])
    assert read_ancestors(twin.accounts["payments-prod"]) == expected
    assert read_ancestors(MANAGEMENT_ACCOUNT) == (units["/"],)
    assert read_management_account() == MANAGEMENT_ACCOUNT
    with pytest.raises(Gone):
        read_ancestors("999999999999")


@pytest.mark.parametrize("parents", [[], [{"Id": "ou-1", "Type": "ORGANIZATIONAL_UNIT"}] * 2])
def test_a_tree_that_is_none_is_not_believed(twin: Twin, parents: list[Any]) -> None:
    with when("ListParents", lambda _asked: {"Parents": parents}), pytest.raises(Refused, match="ParentsUnclear"):
        read_ancestors(twin.accounts["payments-prod"])


def test_a_tree_without_an_end_is_not_walked_for_ever(twin: Twin) -> None:
    in_itself = {"Parents": [{"Id": "ou-1", "Type": "ORGANIZATIONAL_UNIT"}]}
    with when("ListParents", lambda _asked: in_itself), pytest.raises(Refused, match="is in itself"):
        read_ancestors(twin.accounts["payments-prod"])


def test_accounts_below_a_unit_are_listed_with_those_deeper(twin: Twin) -> None:
    below = read_accounts(below=twin.organizational_units["/Workloads"])
    assert {(one.name, one.ou_path) for one in below} == {("payments-dev", "/Dev"), ("payments-prod", "/Prod/Payments")}
    with pytest.raises(Refused, match="ParentNotFoundException"):
        read_accounts(below="ou-abcd-11111111")


def test_a_closed_account_is_not_active(twin: Twin) -> None:
    assert is_active(twin.accounts["payments-dev"])
    twin.organizations.close_account(AccountId=twin.accounts["payments-dev"])
    assert not is_active(twin.accounts["payments-dev"])
    assert not is_active("999999999999")
