"""The one list of everything that was ever asked for, and what it can be narrowed by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accessportal.access_requests import queries
from accessportal.access_requests.states import Found, Search
from accessportal.catalog import queries as catalog
from accessportal.console.resource import Ask, Parameter
from accessportal.kernel.actors import fold_email
from accessportal.kernel.errors import InvalidRequest
from accessportal.web.narrowing import LATELY_DAYS, STATES, narrowed

_COUNTED_TO = 1000
# Rows of a page, where an index leads to them: an account's month in one look. What everybody asked for is read state by state.
_AT_ONCE = 200
_SUGGESTIONS = 5
PERSON = Parameter("Person or group it is for", "alice@example.com", required=False, finds="people and groups")
MORE = (
    Parameter("State", required=False, name="state", choices=(("", "Any"), *((state.value, word) for state, word in STATES.items()))),
    Parameter("Account", "Name or number", required=False, name="account"),
    Parameter("Group asked to be in", "/engineering", required=False, name="group", finds="groups"),
    Parameter("Rule", "Its whole name", required=False, name="rule"),
    Parameter("Ticket", "CHG-4711", required=False, name="ticket"),
    Parameter("Asked from (UTC)", input_type="date", required=False, name="since", days_ago=LATELY_DAYS),
    Parameter("Asked until (UTC)", input_type="date", required=False, name="until"),
)
_NAMES = {
    "ticket_id": "ticket",
    "subject_id": "whom it is for",
    "account_id": "account",
    "group_id": "group",
    "rule_name": "rule",
    "status": "state",
}


def found(ask: Ask) -> Found:
    """The part of the list that is asked for. :raises InvalidRequest: naming the input that can't be read."""
    search = _search_of(ask)
    part = ask.part_seen
    part["limit"] = max(ask.limit, _AT_ONCE) if search.asked else ask.limit
    return queries.search(search=search, count_to=_COUNTED_TO, **part)


def _search_of(ask: Ask) -> Search:
    given = ask.more
    return replace(
        narrowed(given),
        subject_id=fold_email(ask.parameter),
        account_id=_account_id(given["account"]) if given["account"] else "",
        group_id=given["group"],
        rule_name=given["rule"],
        ticket_id=given["ticket"],
    )


def told(ask: Ask) -> Mapping[str, Any]:
    """How the list was found; the page itself says how many there are where that is known."""
    first, *others = [_NAMES[name] for name in _search_of(ask).asked] or [""]
    return {"led_by": first, "others": others}


def near_accounts(text: str) -> list[str]:
    return [account.name for account in catalog.search_accounts(text=text, limit=_SUGGESTIONS)]


def _account_id(text: str) -> str:
    account = catalog.find_account(account=text)
    if account is not None:
        return account.account_id
    if text.isascii() and text.isdigit():
        # What the catalog does not know any more may have been asked for.
        return text
    near = near_accounts(text)
    remedy = f"Did you mean {', '.join(near)}?" if near else "Type its whole name or its 12 digits."
    raise InvalidRequest(f"No account is called “{text[:60]}”. {remedy}", code="account_unknown", field="account")
