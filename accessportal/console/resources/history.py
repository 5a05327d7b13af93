"""Who had access to something at a moment or on some days, and everything that somebody had in a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row
from accessportal.history import queries
from accessportal.history.states import Held, ThingKind
from accessportal.kernel.errors import InvalidRequest
from accessportal.web.holdings import FILE_COLUMNS, USUAL_TIME, AnswerPage, names_of, page_of
from accessportal.web.moments import read_moment
from accessportal.web.narrowing import LATELY_DAYS, narrowed

_KINDS = (
    (ThingKind.ACCOUNT.value, "Account"),
    (ThingKind.GROUP.value, "Group"),
    (ThingKind.SANDBOX.value, "Sandbox"),
    (ThingKind.LEASE.value, "Account that is lent"),
    (ThingKind.APPROVAL.value, "Resource of approvals"),
    (ThingKind.RELATIONSHIP.value, "Object of relationships"),
)
_NOW = timedelta(0)
_TIME = Column("From and to", "web/held/time.html", "col-span")
_WHY = Column("Why", "web/held/why.html", "col-why")
_PROOF = Column("Proof", "web/held/proof.html", "col-why")


def _who_had(ask: Ask) -> AnswerPage:
    kind = ask.more["kind"] or ThingKind.ACCOUNT
    if kind not in set(ThingKind):
        raise InvalidRequest("Choose what it is: an account, a group, a sandbox.", code="kind_unknown", field="kind")
    try:
        thing = queries.find_thing(ThingKind(kind), ask.parameter)
    except InvalidRequest as error:
        raise InvalidRequest(error.message, code=error.code, field="q") from error
    at, until = _days(ask.more, ask.now) or (read_moment(ask.more["at"], field="at"), None)
    try:
        answer = queries.who_had(thing=thing, right=ask.more["right"], at=at, until=until, actor=ask.actor, **ask.part)
    except InvalidRequest as error:
        raise InvalidRequest(error.message, code=error.code, field="until" if error.field == "to" else error.field) from error
    page = page_of(answer, at=at, until=until)
    return replace(page, asked_url=_asked_url(thing.name, ask.now)) if thing.kind is ThingKind.ACCOUNT else page


def _days(given: Mapping[str, str], now: datetime) -> tuple[datetime, datetime] | None:
    """The days from ``since`` to ``until``, or today, both included; ``None``: a moment is asked for."""
    if not given["since"]:
        if given["until"]:
            raise InvalidRequest("Give the first day, too.", code="day_missing", field="since")
        return None
    # Today to its end, and not up to now: the next page asks for the same time.
    days = narrowed({"state": "", "since": given["since"], "until": given["until"] or now.date().isoformat()})
    return (days.since, days.until) if days.since and days.until else None


def _asked_url(account_id: str, now: datetime) -> str:
    """What was asked for lately about this account, whoever had it."""
    given = {"pattern": "all", "account": account_id, "since": (now - timedelta(days=LATELY_DAYS)).date().isoformat()}
    return f"{reverse('admin:console_requests')}?{urlencode(given)}"


def _what_had(ask: Ask) -> AnswerPage:
    begin, end = (read_moment(ask.more[name], field=name) for name in ("from", "to"))
    return page_of(queries.what_had(email=ask.parameter, begin=begin, end=end, actor=ask.actor, **ask.part))


class History(Resource):
    name = "history"
    singular = "line of who had what"
    plural = "Who had what"
    icon = "history"
    about = "Who had access to something, and all that somebody had: by which request, decided by whom, proved how."
    has_page = False
    remark_template = "console/held/remark.html"
    file_columns = FILE_COLUMNS
    columns = (Column("Who", "web/held/who.html", "col-who"), Column("Had", "web/held/what.html", "col-what"), _TIME, _WHY, _PROOF)
    patterns = (
        Pattern(
            name="who",
            label="Who had it",
            fetch=_who_had,
            parameter=Parameter("Which", "payments-prod"),
            more=(
                Parameter("What it is", name="kind", choices=_KINDS, required=False),
                Parameter("At", name="at", ago=_NOW, required=False, unless="since"),
                Parameter("Or from (UTC day)", input_type="date", name="since", required=False, days_ago=LATELY_DAYS),
                Parameter("To (a year at most)", input_type="date", name="until", required=False),
                Parameter("Right, if only one", "ReadOnlyAccess", name="right", required=False),
            ),
            goes_on=True,
            empty_title="Nobody had it then",
            empty_hint="As far as the portal knows. An account goes by name or number, a group by its path, a sandbox by its id.",
        ),
        Pattern(
            name="what",
            label="What somebody had",
            fetch=_what_had,
            parameter=Parameter("Person, by e-mail address", "alice@example.com", finds="people"),
            more=(
                Parameter("From", name="from", ago=USUAL_TIME, required=False),
                Parameter("To", name="to", ago=_NOW, required=False),
            ),
            columns=(Column("What", "web/held/what_by.html", "col-who"), _TIME, _WHY, _PROOF),
            goes_on=True,
            empty_title="They had nothing in that time",
            empty_hint="As far as the portal knows. Check the spelling of the address, and the time.",
        ),
    )

    def rows(self, items: Sequence[Held], ask: Ask) -> list[Row]:
        names = names_of(items)
        return [Row("", held, names.get(held.interval.thing.name, "")) for held in items]
