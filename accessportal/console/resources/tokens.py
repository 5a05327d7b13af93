"""The API tokens of programs: what each opens, when it was last used, and how to take it away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section
from accessportal.identity.queries import is_operator
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, refuse
from accessportal.tokens import operations, queries
from accessportal.tokens.states import ApiToken, TokenState
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.forms import ReasonForm

_ALREADY = "token_revoked"


def _words(token: ApiToken, now: datetime) -> str:
    words = queries.explain(token_id=token.token_id, now=now)
    if token.is_by_portal or token.state(now) is not TokenState.LIVE:
        return words
    if is_operator(email=token.created_by, since=token.created_at, now=now):
        return words
    return f"It opens nothing now: {token.created_by}, who made it, is no operator. {words}"


def _may_revoke(token: ApiToken, actor: Actor, now: datetime) -> Decision:
    decision = queries.may_manage(actor=actor)
    if decision.allowed and token.state(now) is TokenState.REVOKED:
        return refuse(f"{token.name} was revoked by {token.revoked_by} already.", code=_ALREADY)
    return decision


def _revoke(token: ApiToken, data: Data, actor: Actor, now: datetime) -> Told:
    operations.revoke_token(token_id=token.token_id, reason=data["reason"], actor=actor, now=now)
    return Told(f"{token.name} was revoked: it opens nothing any more.")


REVOKE: Deed[ApiToken] = Deed(
    name="revoke",
    label="Revoke",
    question=lambda token: f"Revoke {token.name}?",
    explain=lambda token: (
        f"From now on {token.name} opens nothing: its next request is refused. "
        "A revoked token never comes back; the program needs another one."
    ),
    may=_may_revoke,
    run=_revoke,
    form=partial(ReasonForm, is_required=False, label="Reason (optional, kept in the history)"),
    is_for=lambda actor, _book: queries.may_manage(actor=actor).allowed,
    stale_codes=frozenset({_ALREADY}),
    is_destructive=True,
)


class Tokens(Resource):
    name = "tokens"
    singular = "API token"
    plural = "API tokens"
    icon = "key-round"
    about = "What programs sign in with: what each token opens, how often it may ask, and when it was last used."
    notice_template = "console/tokens/notice.html"
    headline_template = "console/tokens/headline.html"
    columns = (
        Column("Token", "console/cells/token_name.html", "col-who"),
        Column("State", "console/cells/token_state.html", "col-state"),
        Column("Last used", "console/cells/token_use.html", "col-time"),
        Column("Created", "console/cells/token_made.html", "col-context"),
    )
    file_columns = exported(
        "token_id",
        "name",
        "scope",
        "home_scope",
        "tracks",
        "most_held",
        "rate_per_minute",
        "created_by",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_by",
        "revoked_at",
    )
    patterns = (
        Pattern(
            name="unrevoked",
            label="API tokens",
            fetch=lambda ask: queries.list_unrevoked(**ask.part),
            empty_title="No program has a token",
            empty_hint="Programs need one to call the API. Operators create them here, or with: manage.py create_token",
        ),
        Pattern(
            name="all",
            label="Revoked ones, too",
            fetch=lambda ask: queries.list_tokens(**ask.part),
            empty_title="There never was a token",
            empty_hint="Revoked ones stay on this list.",
        ),
        Pattern(
            name="maker",
            label="Made by",
            fetch=lambda ask: queries.list_of_maker(email=ask.parameter, **ask.part),
            empty_title="Nobody of this name made a token",
            empty_hint="Give the whole address of whoever created them.",
            parameter=Parameter("Who made them", "olga@example.com", finds="people"),
        ),
    )
    sections = (
        Section("As it is now", "console/tokens/words.html"),
        Section("What happened", "web/latest_events.html"),
        Section("Facts", "console/tokens/facts.html", is_aside=True),
    )
    deeds = (REVOKE,)

    def read(self, key: str, actor: Actor, now: datetime) -> ApiToken:
        return queries.find_token(token_id=key)

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        return {"may_create": queries.may_manage(actor=ask.actor).allowed}

    def rows(self, items: Sequence[ApiToken], ask: Ask) -> list[Row]:
        return [Row(token.token_id, token, token.state(ask.now)) for token in items]

    def details(self, record: ApiToken, ask: Ask) -> dict[str, Any]:
        return {
            "token_state": record.state(ask.now),
            "words": _words(record, ask.now),
            **latest_of(record),
        }
