"""What would happen if a form were sent now, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from accessportal.access_requests import policy
from accessportal.access_requests.kind import Resolved, kind_named
from accessportal.access_requests.kinds.aws_account.terms import AccountAsked, AccountTerms
from accessportal.access_requests.queries.approvers import ApproverBook, demand_of
from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.queries.offering import admins_or_operators, ways_in
from accessportal.access_requests.queries.subjects import facts_of, subject_facts
from accessportal.access_requests.queries.time_held import held_of, with_held
from accessportal.access_requests.states import AccessRequest, Preview, Subject, WayIn
from accessportal.catalog.states import Account
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.rules.matching import is_served_by_membership, judge
from accessportal.rules.states import Effect, Rule, RuleDecision
from accessportal.rules.terms import Finding, Part


def preview(
    *,
    kind: str,
    subject_id: str | None,
    target: Mapping[str, str],
    duration_seconds: int | None,
    ticket_id: str | None,
    extends: AccessRequest | None = None,
    actor: Actor,
    book: ApproverBook,
) -> Preview:
    """Tell what would come of ``actor`` asking now, also that it is not possible. Inputs still empty (``None``) are not judged. ``extends``
    is the request to extend."""
    try:
        subject = subject_facts(subject_id, actor, book=book)
        resolved = _resolve(kind, target, subject, duration_seconds, ticket_id, book)
    except InvalidRequest as error:
        return _impossible(error.message, field=error.field)
    except NotAllowed as error:
        return _impossible(error.message)
    if extends is not None and duration_seconds is not None and policy.ends_no_later(extends, duration_seconds, book.now):
        return _impossible(policy.EXTENSION_TOO_SHORT, field="duration")
    open_now = list_open(subject_id=subject.subject_id)
    resolved = with_held(resolved, open_now, now=book.now)
    decision = book.decide(resolved.question)
    try:
        if decision.allowed and decision.rule is not None:
            kind_named(kind).grant.require_free(
                resolved=resolved, subject=subject, rule=decision.rule, open_now=open_now, book=book.directory, now=book.now
            )
    except NotAllowed as error:
        return _impossible(error.message)
    foreseen = _preview_of(decision, resolved, actor, subject, book)
    if not decision.allowed:
        wanted, _ = kind_named(kind).target.membership(resolved.stored)
        ways = _ways_in(resolved, subject, book, wanted=wanted)
        is_group_needed = decision.code == "subject_not_covered"
        writes_to = admins_or_operators(group_id=wanted, book=book) if wanted and not ways and is_group_needed else ()
        foreseen = replace(foreseen, ways_in=ways, writes_to=writes_to, needs_group=bool(ways or wanted) and is_group_needed)
    elif subject.subject_id.startswith("/"):
        foreseen = replace(foreseen, people=book.directory.count_in(subject.subject_id, now=book.now))
    held = held_of(kind, resolved.stored, open_now)
    return _with_held(foreseen, held, book.now)


def explain(
    *, kind: str, subject_id: str, target: Mapping[str, str], duration_seconds: int | None, ticket_id: str | None, book: ApproverBook
) -> tuple[RuleDecision, Preview]:
    """Give the rules' whole answer for any person or group as the subject: why, and who can decide. InvalidRequest when the group or a part
    of the target does not exist, NotAllowed when the person is unknown or disabled."""
    subject = facts_of(subject_id, book=book)
    resolved = _resolve(kind, target, subject, duration_seconds, ticket_id, book)
    resolved = with_held(resolved, list_open(subject_id=subject.subject_id), now=book.now)
    decision = book.decide(resolved.question)
    return decision, _preview_of(decision, resolved, Actor(name=subject.subject_id), subject, book)


def _resolve(
    kind: str, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: ApproverBook
) -> Resolved:
    return kind_named(kind).target.resolve(
        target=target,
        subject=subject,
        duration_seconds=duration_seconds,
        ticket_id=None if ticket_id is None else policy.clean_ticket(ticket_id),
        book=book.directory,
        now=book.now,
    )


def _preview_of(decision: RuleDecision, resolved: Resolved, actor: Actor, subject: Subject, book: ApproverBook) -> Preview:
    rule, approvers, outcome, quorum = decision.rule, None, "impossible", 0
    longest, usual, by_any = decision.max_duration_seconds, 0, decision.max_duration_seconds
    giving = rule if decision.allowed else None
    if giving is not None:
        longest = giving.longest_after(resolved.question.held_seconds)
        usual = min(giving.default_duration_seconds, longest)
        outcome = "at_once"
    if giving is not None and giving.approval.required:
        outcome, quorum = "needs_approval", giving.approval.quorum
        group_id, role = kind_named(resolved.question.kind).target.membership(resolved.stored)
        approvers = book.of_demand(
            demand_of(giving, group_id=group_id),
            requested_by=actor.name,
            subject_id=subject.subject_id,
            at=book.moment_for(group_id=group_id, role=role),
        )
    if resolved.longest_seconds is not None:
        longest, usual, by_any = (min(seconds, resolved.longest_seconds) for seconds in (longest, usual, by_any))
    return Preview(
        outcome=outcome,
        reason=decision.reason,
        rule_name=rule.name if rule is not None else "",
        rule_description=rule.description if rule is not None else "",
        max_duration_seconds=longest,
        default_duration_seconds=usual,
        longest_by_any_rule_seconds=by_any,
        duration_seconds=resolved.question.duration_seconds,
        approvers=approvers,
        quorum=quorum,
        ticket_required=rule is not None and rule.ticket.required,
        ticket_pattern=rule.ticket.pattern if rule is not None else "",
        remedies=decision.remedies,
        misses=tuple((miss.rule_name, miss.reasons) for miss in decision.misses),
        session_seconds=resolved.session_seconds,
        field=decision.field,
        facts=resolved.facts,
        max_total_seconds=giving.max_total_seconds if giving is not None else 0,
        served_by=giving.subjects.names if giving is not None and is_served_by_membership(giving, subject.subject_id) else (),
    )


def _ways_in(resolved: Resolved, subject: Subject, book: ApproverBook, *, wanted: str) -> tuple[WayIn, ...]:
    """By the rules that only lack the subject, whatever the length and the ticket. The group that is ``wanted`` is no way to itself."""
    question = replace(resolved.question, duration_seconds=None, ticket_id=None)
    allows = [rule for rule in book.rules.values() if rule.kind == question.kind and rule.effect is Effect.ALLOW]
    near = [rule for rule in allows if {finding.part for finding in judge(rule, question)} == {Part.SUBJECT}]
    return tuple(way for way in ways_in(rules=near, subject=subject, book=book) if way.group_id != wanted) if near else ()


def _with_held(found: Preview, held: Sequence[AccessRequest], now: datetime) -> Preview:
    longest = max((one for one in held if not one.is_over(now)), key=lambda request: request.expires_at, default=None)
    if longest is None:
        return found
    return replace(found, held_until=longest.expires_at, held_by_request=longest.request_id)


def _impossible(reason: str, *, field: str = "") -> Preview:
    return Preview(outcome="impossible", reason=reason, field=field)


def rules_about_account(*, account: Account, among: Iterable[Rule]) -> tuple[Rule, ...]:
    """Those that give something in this account, or refuse it, whoever asks, in their order."""
    asked = AccountAsked(account_id=account.account_id, account_name=account.name, ou_path=account.ou_path, tags=account.tags)
    return tuple(rule for rule in among if isinstance(rule.terms, AccountTerms) and not any(_flaws_of(rule, rule.terms, asked)))


def _flaws_of(rule: Rule, terms: AccountTerms, asked: AccountAsked) -> Iterator[Finding]:
    """Asked for the first thing that the rule offers, so that the account alone decides."""
    return terms.judge(replace(asked, permission_set=next(iter(terms.permission_sets), "")), is_deny=rule.effect is Effect.DENY)
