"""The catalog: accounts and permission sets as last read from the cloud, with the age of that reading in view."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import Search
from accessportal.catalog import queries
from accessportal.catalog.states import Account
from accessportal.console.holding import held_and_asked
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotFound
from accessportal.kernel.moments import is_recent
from accessportal.web.exporting import exported

# Twice the distance between two scheduled syncs: later than this, one has failed.
STALE_AFTER = timedelta(minutes=30)


class _FromCatalog(Resource):
    notice_template = "console/catalog/freshness.html"

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        freshness = queries.freshness()
        is_stale = freshness.synced_at is None or not is_recent(freshness.synced_at, now=ask.now, within=STALE_AFTER)
        return {"freshness": freshness, "is_stale": is_stale}

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        return [Row("", item) for item in items]


class Accounts(_FromCatalog):
    name = "accounts"
    singular = "account"
    plural = "Accounts"
    icon = "cloud"
    about = "The AWS accounts as the catalog last read them, and how old that is."
    columns = (
        Column("Account", "console/cells/account_name.html", "col-who"),
        Column("Where", "console/cells/account_where.html", "col-what"),
        Column("Tags", "console/cells/account_tags.html", "col-context"),
        Column("State", "console/cells/account_state.html", "col-state"),
    )
    file_columns = exported("account_id", "name", "email", "status", "ou_path", "tags", "is_management")
    patterns = (
        Pattern(
            name="all",
            label="Accounts",
            fetch=lambda ask: queries.list_accounts(search=ask.parameter, **ask.part),
            parameter=Parameter("Search accounts", "Name, number, OU or tag", required=False),
            empty_title="No account is called that",
            empty_hint="Search by name, 12-digit number, OU path or tag value; or the catalog was never synced (run sync_catalog).",
        ),
    )

    sections = (
        Section("Who has it now", "console/held.html"),
        Section("Who may have it", "console/accounts/rules.html"),
        Section("Asked for last", "console/latest.html"),
        Section("Facts", "console/accounts/facts.html", is_aside=True),
    )
    has_history = False

    def read(self, key: str, actor: Actor, now: datetime) -> Account:
        found = queries.find_account(account=key)
        if found is None:
            raise NotFound("The catalog knows no such account.", code="account_unknown")
        return found

    def rows(self, items: Sequence[Account], ask: Ask) -> list[Row]:
        return [Row(item.account_id, item) for item in items]

    def details(self, record: Account, ask: Ask) -> dict[str, Any]:
        return {
            **held_and_asked(Search(account_id=record.account_id), ask),
            "all_url": f"{reverse('admin:console_requests')}?pattern=all&account={record.account_id}",
            "rules": requests.rules_about_account(account=record, among=ask.book.rules.values()),
        }


class PermissionSets(_FromCatalog):
    name = "permission-sets"
    singular = "permission set"
    plural = "Permission sets"
    icon = "key-round"
    about = "What can be asked for in an account, and how long a session outlives the grant."
    has_page = False
    columns = (
        Column("Permission set", "console/cells/permission_set_name.html", "col-wide"),
        Column("Session", "console/cells/permission_set_session.html", "col-when"),
    )
    file_columns = exported("name", "arn", "description", "session_seconds")
    patterns = (
        Pattern(
            name="all",
            label="Permission sets",
            fetch=lambda ask: queries.list_permission_sets(search=ask.parameter, **ask.part),
            parameter=Parameter("Search permission sets", "Part of a name", required=False),
            empty_title="No permission set is called that",
            empty_hint="Search by part of the name; or the catalog was never synced (run sync_catalog).",
        ),
    )
