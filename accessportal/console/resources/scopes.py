"""The scopes of approvals and relationships: how long records may live there, how many there are, and deleting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from django import forms

from accessportal.authz import operations, queries
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Ledger, caller_of, read_scope
from accessportal.authz.states import PRESETS, Scope, ScopeFacts, ScopeKind, ScopeState, TtlPolicy
from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.console.resources.authz import SCOPE
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.durations import format_duration
from accessportal.kernel.errors import InvalidRequest, NotFound
from accessportal.kernel.pages import Page
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.forms import DeedForm, DurationField, TextField, line
from accessportal.web.presenting import typed_duration

# Each is counted, which takes a file long, so fewer scopes to a page.
_COUNTED_PAGE = 10
_OWN, _ABOVE = "own", "above"
_WORDS = {"temporary": "Temporary", "short_lived": "Short-lived", "long_lived": "Long-lived"}


@dataclass(frozen=True, slots=True)
class Counted:
    """A scope with how many of its records count at ``now``: a file counts them to the end when it comes to it."""

    facts: ScopeFacts
    now: datetime

    @property
    def approvals(self) -> int:
        return self._count(APPROVALS)

    @property
    def relationships(self) -> int:
        return self._count(RELATIONSHIPS)

    def _count(self, ledger: Ledger[Any]) -> int:
        return queries.count_in_scope(ledger, self.facts.scope, caller=caller_of(system("console")), now=self.now)


def scope_of(key: str) -> Scope:
    """The scope that an address names. :raises NotFound: for what can be none."""
    try:
        return read_scope(key)
    except InvalidRequest as error:
        raise NotFound(f"There can be no such scope. {error.message}", code="scope_not_found") from error


def policy_in_words(policy: TtlPolicy) -> str:
    """``1 min to 1 d, 1 h unless another time is given``."""
    usual = f", {format_duration(policy.default_seconds)} unless another time is given" if policy.default_seconds else ""
    kept = "" if policy.is_enforced else "; what is outside is kept, with a warning"
    moved = f"; each use moves the end to {format_duration(policy.refresh_seconds)} from then" if policy.refresh_seconds else ""
    return f"{format_duration(policy.min_seconds)} to {format_duration(policy.max_seconds)}{usual}{kept}{moved}"


class PolicyForm(DeedForm):
    aliases: ClassVar[Mapping[str, str]] = {
        "default_seconds": "usual",
        "min_seconds": "shortest",
        "max_seconds": "longest",
        "refresh_seconds": "refresh",
    }

    policy = forms.ChoiceField(
        label="Policy",
        choices=[
            *((name, f"{_WORDS[name]}: {policy_in_words(policy)}") for name, policy in PRESETS.items()),
            (_OWN, "Another, as written below"),
            (_ABOVE, "None of its own: that of the nearest scope above"),
        ],
        error_messages={"required": "Choose a policy.", "invalid_choice": "Choose one of these policies."},
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    shortest = DurationField(label="Shortest time", required=False, help_text="For “another” alone.", widget=line(placeholder="1m"))
    longest = DurationField(label="Longest time, from the first grant", required=False, widget=line(placeholder="30d"))
    usual = DurationField(label="Unless another time is given", required=False, widget=line(placeholder="1h"))
    outside = forms.ChoiceField(
        label="A time outside the limits",
        choices=[("refused", "is refused"), ("kept", "is kept, with a warning")],
        error_messages={"required": "Choose what becomes of it.", "invalid_choice": "Choose refused or kept."},
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    refresh = DurationField(
        label="Each use moves the end to this time from then",
        required=False,
        help_text="Empty: use moves nothing. Never past the longest time.",
        widget=line(placeholder="30m"),
    )

    def chosen(self) -> TtlPolicy | None:
        """What was chosen; whether it makes sense, the domain says."""
        given = self.cleaned_data
        if given["policy"] == _ABOVE:
            return None
        chosen = PRESETS.get(given["policy"])
        if chosen is None:
            lengths = {"min_seconds": given["shortest"], "max_seconds": given["longest"], "default_seconds": given["usual"]}
            chosen = TtlPolicy(**{name: seconds for name, seconds in lengths.items() if seconds is not None})
        return replace(chosen, is_enforced=given["outside"] == "refused", refresh_seconds=given["refresh"])

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            self.cleaned_data["wanted"] = self.chosen()
        return self.cleaned_data


class DeleteForm(DeedForm):
    typed = TextField(
        limit=300, label="Type the name of the scope", missing="Type the name of the scope to delete what is in it.", widget=line()
    )


def _started(facts: ScopeFacts, given: Data) -> dict[str, Any]:
    policy = facts.policy
    if policy is None:
        return {"policy": "temporary", **given}
    plain = replace(policy, is_enforced=True, refresh_seconds=None)
    return {
        "policy": next((name for name, preset in PRESETS.items() if preset == plain), _OWN),
        "shortest": typed_duration(policy.min_seconds),
        "longest": typed_duration(policy.max_seconds),
        "usual": typed_duration(policy.default_seconds) if policy.default_seconds else "",
        "outside": "refused" if policy.is_enforced else "kept",
        "refresh": typed_duration(policy.refresh_seconds) if policy.refresh_seconds else "",
        **given,
    }


def _may_set(facts: ScopeFacts, actor: Actor, _now: datetime) -> Decision:
    if not actor.is_operator:
        return refuse("Only operators set policies and delete scopes. You may look.", code="operators_only")
    if facts.state is ScopeState.DELETING:
        return refuse(f"{facts.scope} is being deleted.", code="scope_deleting")
    return allow("Operators may.")


def _may_delete(facts: ScopeFacts, actor: Actor, now: datetime) -> Decision:
    decision = _may_set(facts, actor, now)
    if decision.allowed and (facts.version == 0 or facts.state is ScopeState.DELETED):
        return refuse(f"There is nothing in {facts.scope} to delete.", code="scope_unknown")
    return decision


def _set_policy(facts: ScopeFacts, data: Data, actor: Actor, now: datetime) -> Told:
    wanted = data["wanted"]
    operations.set_policy(scope=facts.scope, policy=wanted, caller=caller_of(actor), now=now)
    words = policy_in_words(wanted) if wanted else "that of the nearest scope above"
    return Told(f"The policy of {facts.scope} is set: {words}. What was granted before keeps its end.")


def _delete(facts: ScopeFacts, data: Data, actor: Actor, now: datetime) -> Told:
    operations.begin_deletion(scope=facts.scope, typed=data["typed"], caller=caller_of(actor), now=now)
    return Told(f"Nothing new comes into {facts.scope}, and what is in it is being removed. Its page shows how far that is.")


SET_POLICY: Deed[ScopeFacts] = Deed(
    name="policy",
    label="Set policy",
    question=lambda facts: f"Set the policy of {facts.scope}",
    explain=lambda facts: "It counts for the scope and all below it that has none of its own. What was granted before keeps its end.",
    may=_may_set,
    run=_set_policy,
    form=PolicyForm,
    starts_with=_started,
    stale_codes=frozenset({"scope_deleting"}),
)
DELETE: Deed[ScopeFacts] = Deed(
    name="delete",
    label="Delete",
    question=lambda facts: f"Delete {facts.scope}?",
    explain=lambda facts: (
        f"All that is in {facts.scope} is removed for good, also what requests hold, and its policy. Scopes below it stay. "
        "Nothing new comes into it until that is done."
    ),
    template="console/authz/deletion_counts.html",
    may=_may_delete,
    run=_delete,
    form=DeleteForm,
    stale_codes=frozenset({"scope_deleting", "scope_unknown"}),
    is_destructive=True,
)


def _counted(ask: Ask) -> Page[Counted]:
    page = queries.list_scopes(cursor=ask.cursor, limit=_COUNTED_PAGE, caller=caller_of(ask.actor))
    return page.map(lambda facts: Counted(facts, ask.now))


_COLUMNS = (
    Column("Scope", "console/authz/cell_name.html", "col-who"),
    Column("Policy", "console/authz/cell_policy.html", "col-what"),
    Column("State", "console/authz/cell_state.html", "col-state"),
)


class Scopes(Resource):
    name = "scopes"
    singular = "scope"
    plural = "Scopes"
    icon = "boxes"
    about = "The tenants, environments and paths that approvals and relationships are kept apart by, and how long these may live there."
    notice_template = "console/authz/notice.html"
    headline_template = "console/authz/scope_headline.html"
    columns = _COLUMNS
    file_columns = exported("scope", "state", ("policy", lambda facts: facts.policy and asdict(facts.policy)), "deleting_since", "removed")
    patterns = (
        Pattern(
            name="all",
            label="All scopes",
            fetch=lambda ask: queries.list_scopes(caller=caller_of(ask.actor), **ask.part),
            empty_title="Nothing was granted in any scope yet",
            empty_hint="A scope appears here with its first approval, relationship or policy. Look for others by name.",
        ),
        Pattern(
            name="counted",
            label="With counts",
            fetch=_counted,
            columns=(*_COLUMNS[:2], Column("Counts now", "console/authz/cell_counts.html", "col-context"), _COLUMNS[2]),
            file_columns=exported(("scope", "facts.scope"), ("state", "facts.state"), "approvals", "relationships"),
            empty_title="Nothing was granted in any scope yet",
            empty_hint="A scope appears here with its first approval, relationship or policy.",
        ),
        Pattern(
            name="named",
            label="By name",
            fetch=lambda ask: Page((queries.find_scope(read_scope(ask.parameter, field="q"), caller=caller_of(ask.actor)),)),
            parameter=SCOPE,
            empty_title="There is no such scope",
            empty_hint="Check its name.",
        ),
    )
    sections = (
        Section("In it now", "console/authz/scope_counts.html"),
        Section("What happened", "web/latest_events.html"),
        Section("How long records live", "console/authz/scope_policy.html", is_aside=True),
    )
    deeds = (SET_POLICY, DELETE)

    def read(self, key: str, actor: Actor, now: datetime) -> ScopeFacts:
        return queries.find_scope(scope_of(key), caller=caller_of(actor))

    def title(self, record: ScopeFacts) -> str:
        return record.scope

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        return {"about": self.about}

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        scopes = [one.facts if isinstance(one, Counted) else one for one in items]
        return [Row(facts.scope, facts) for facts in scopes]

    def details(self, record: ScopeFacts, ask: Ask) -> dict[str, Any]:
        governing = queries.governing_policy(record.scope, caller=caller_of(ask.actor))
        return {
            "has_below": record.scope.kind in (ScopeKind.TENANT, ScopeKind.CUSTOM),
            "governing": governing,
            "is_own": governing.scope == record.scope,
            **latest_of(record),
        }
