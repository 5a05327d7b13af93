"""Finding accounts, permission sets and principals; what is ambiguous is said, not guessed."""

from __future__ import annotations

from unittest import mock

import pytest
from django.db import OperationalError
from django.db.models.query import QuerySet
from pytest_django import DjangoAssertNumQueries

from accessportal.catalog import queries
from accessportal.kernel.errors import Conflict, InvalidRequest, NotFound, Unavailable
from accessportal.kernel.pages import every
from tests.catalog.conftest import account, fill, group, permission_set, user

pytestmark = pytest.mark.django_db


def _names(text: str, limit: int = 20) -> list[str]:
    return [one.name for one in queries.search_accounts(text=text, limit=limit)]


class TestFindAccount:
    def test_by_id_or_by_name_in_any_case(self) -> None:
        fill(accounts=[account(1, "Payments-Prod", tags={"env": "prod"}), account(2, "payments-dev")])
        found = queries.find_account(account=" PAYMENTS-prod ")
        assert found == account(1, "Payments-Prod", tags={"env": "prod"})
        assert queries.find_account(account="000000000001") == found
        assert queries.get_account(account="payments-dev").account_id == "000000000002"

    @pytest.mark.parametrize("wanted", ["", "  ", "nowhere", "999999999999", "a\0", "x" * 100_000, "\u0661" * 12])
    def test_nothing_found(self, wanted: str) -> None:
        fill(accounts=[account(1, "payments-prod")])
        assert queries.find_account(account=wanted) is None
        with pytest.raises(NotFound):
            queries.get_account(account=wanted)

    def test_a_name_carried_by_two_names_both_ids(self) -> None:
        fill(accounts=[account(1, "sandbox"), account(2, "Sandbox", status="SUSPENDED")])
        with pytest.raises(Conflict, match="000000000001 and 000000000002"):
            queries.find_account(account="sandbox")
        assert queries.find_account(account="000000000002").status == "SUSPENDED"  # type: ignore[union-attr]

    def test_an_id_wins_over_an_account_named_like_it(self) -> None:
        fill(accounts=[account(1, "one"), account(2, "000000000001")])
        assert queries.get_account(account="000000000001").name == "one"


class TestSearchAccounts:
    def test_best_match_first(self) -> None:
        fill(
            accounts=[
                account(1, "zz-tagged", tags={"team": "payments"}),
                account(2, "yy-placed", ou_path="/Workloads/Payments"),
                account(3, "old-payments"),
                account(4, "payments-prod"),
                account(5, "Payments"),
                account(6, "other"),
            ]
        )
        assert _names("payments") == ["Payments", "payments-prod", "old-payments", "yy-placed", "zz-tagged"]
        assert _names("000000000006") == ["other"]
        assert _names("payments", limit=2) == ["Payments", "payments-prod"]

    def test_every_word_must_match_somewhere(self) -> None:
        fill(
            accounts=[
                account(1, "payments", ou_path="/Workloads/Prod"),
                account(2, "payments", ou_path="/Workloads/Dev"),
                account(3, "prod-payments-eu"),
            ]
        )
        assert [one.account_id for one in queries.search_accounts(text="Prod payments")] == ["000000000003", "000000000001"]
        assert _names("payments nothing") == []

    @pytest.mark.parametrize("text", ["env=prod", "ENV=Prod", "env = prod", "env prod", "prod"])
    def test_a_tag_is_found_as_it_is_shown(self, text: str) -> None:
        fill(accounts=[account(1, "one", tags={"env": "prod", "team": "a"}), account(2, "two", tags={"env": "dev"}), account(3, "three")])
        assert _names(text) == ["one"]
        assert [one.name for one in queries.list_accounts(search=text).items] == ["one"]

    def test_wildcards_are_letters(self) -> None:
        fill(accounts=[account(1, "a_b"), account(2, "axb"), account(3, "100%")])
        assert _names("a_b") == ["a_b"]
        assert _names("%") == ["100%"]

    def test_only_active_accounts_are_offered(self) -> None:
        fill(accounts=[account(1, "open"), account(2, "closed", status="SUSPENDED"), account(3, "going", status="PENDING_CLOSURE")])
        assert _names("") == ["open"]
        assert _names("closed") == []
        assert [one.name for one in queries.list_accounts().items] == ["closed", "going", "open"]

    def test_unreadable_tags_stay_unreadable(self) -> None:
        fill(accounts=[account(1, "untagged", tags={}), account(2, "unreadable", tags=None)])
        assert queries.get_account(account="untagged").tags == {}
        assert queries.get_account(account="unreadable").tags is None

    def test_a_search_among_five_thousand_gives_one_page_in_one_query(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        fill(
            accounts=[
                account(number, f"team{number % 70}-app{number}-prod", ou_path=f"/Workloads/Prod/Team{number % 70}", tags={"env": "prod"})
                for number in range(5000)
            ],
            sets=[permission_set(f"Set{number}", "Reads and writes some of the services") for number in range(500)],
        )
        for text in ("", "prod", "team7 prod app", "000000004711", "no such account"):
            with django_assert_num_queries(1):
                accounts = queries.search_accounts(text=text, limit=20)
            with django_assert_num_queries(1):
                sets = queries.search_permission_sets(text=text, limit=20)
            assert len(accounts) <= 20, text
            assert len(sets) <= 20, text


class TestLists:
    def test_accounts_page_by_page(self) -> None:
        fill(accounts=[account(number, name) for number, name in enumerate(["b", "a", "B", "c", "a"])])
        first = queries.list_accounts(limit=2)
        assert [one.account_id[-1] for one in first.items] == ["1", "4"]
        pages = every(lambda cursor: queries.list_accounts(limit=2, cursor=cursor))
        assert [one.account_id[-1] for one in pages] == ["1", "4", "0", "2", "3"]
        assert queries.list_accounts(limit=5).next_cursor is None
        assert [one.name for one in queries.list_accounts(search="B").items] == ["b", "B"]

    def test_a_cursor_fits_its_own_search_alone(self) -> None:
        fill(accounts=[account(1, "a"), account(2, "b")], sets=[permission_set("a"), permission_set("b")])
        cursor = queries.list_accounts(limit=1).next_cursor
        with pytest.raises(InvalidRequest):
            queries.list_accounts(search="a", limit=1, cursor=cursor)
        with pytest.raises(InvalidRequest):
            queries.list_permission_sets(limit=1, cursor=cursor)

    def test_permission_sets(self) -> None:
        fill(
            sets=[
                permission_set("ReadOnlyAccess"),
                permission_set("Billing", "Reads bills"),
                permission_set("Admin", "All; no read limits"),
            ]
        )
        assert [one.name for one in queries.search_permission_sets(text="read")] == ["ReadOnlyAccess", "Admin", "Billing"]
        assert [one.name for one in queries.search_permission_sets()] == ["Admin", "Billing", "ReadOnlyAccess"]
        pages = every(lambda cursor: queries.list_permission_sets(limit=1, cursor=cursor))
        assert [one.name for one in pages] == ["Admin", "Billing", "ReadOnlyAccess"]
        found = queries.find_permission_set(name="ReadOnlyAccess")
        assert found is not None
        assert queries.find_permission_set_by_arn(arn=found.arn) == found
        assert queries.find_permission_set(name="readonlyaccess") is None


class TestPrincipals:
    def test_people_by_address_and_groups_by_path(self) -> None:
        fill(principals=[user("u-1", "Alice@Example.com"), group("g-1", "/engineering"), group("g-2", "alice@example.com")])
        assert queries.find_user_principal(email="ALICE@example.com") == user("u-1", "Alice@Example.com")
        assert queries.find_group_principal(group_id="/engineering") == group("g-1", "/engineering")
        assert queries.find_principal(principal_id="g-1") == group("g-1", "/engineering")
        assert queries.find_user_principal(email="/engineering") is None
        assert queries.find_group_principal(group_id="/Engineering") is None
        assert queries.find_user_principal(email="") is None

    def test_access_never_goes_to_one_of_two(self) -> None:
        fill(principals=[user("u-1", "alice@example.com"), user("u-2", "ALICE@example.com"), group("g-1", "/a"), group("g-2", "/a")])
        with pytest.raises(Conflict, match="u-1 and u-2"):
            queries.find_user_principal(email="alice@example.com")
        with pytest.raises(Conflict, match="g-1 and g-2"):
            queries.find_group_principal(group_id="/a")


def test_a_database_that_does_not_answer_is_not_an_empty_catalog() -> None:
    with mock.patch.object(QuerySet, "_fetch_all", side_effect=OperationalError("gone")):
        with pytest.raises(Unavailable):
            queries.search_accounts(text="a")
        with pytest.raises(Unavailable):
            queries.find_account(account="a")
        with pytest.raises(Unavailable):
            queries.freshness()
