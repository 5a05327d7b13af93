"""Approvals and relationships from a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from rich.console import Console

from accessportal.authz import operations, queries
from accessportal.authz.operations import IfExists
from accessportal.authz.queries import APPROVALS, LEDGERS, RELATIONSHIPS, Answer, Ledger, caller_of, read_scope
from accessportal.authz.states import PRESETS, Approval, Names, Relationship, RelationType, Scope, ScopeState, TtlPolicy
from accessportal.commands.base import Outcome, PortalCommand, command, document_of, failed, first
from accessportal.commands.flags import BadUsage, Flag, Limit, read_duration, read_pairs, read_whole_number
from accessportal.commands.terminal import Columns, Document, Facts, Listing, moment, say, show_report
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page
from accessportal.kernel.runs import Failure


def _read_scope(text: str, flag: str) -> Scope:
    try:
        return read_scope(text)
    except InvalidRequest as error:
        raise BadUsage(error.message, flag=flag, code=error.code) from error


InScope = Annotated[Scope, Flag("global, tenant:T, env:E, tenant:T:env:E or custom:A:B", "SCOPE", _read_scope)]
Ttl = Annotated[int | None, Flag("like 30m, 8h or P30D (default: as the scope's policy says)", "D", read_duration)]
Again = Annotated[IfExists, Flag("what to do with one that counts still (default: refuse)")]
Metadata = Annotated[list[str] | None, Flag("kept with it; may be repeated", "NAME=VALUE")]
Identity = Annotated[str, Flag("who may", "IDENTITY")]
Resource = Annotated[str, Flag("on what", "RESOURCE")]
Action = Annotated[str, Flag("what they may do", "ACTION")]
Subject = Annotated[str, Flag("who stands in the relation", "SUBJECT")]
Relation = Annotated[str, Flag("like editor, trusts or member", "RELATION")]
Object = Annotated[str, Flag("to what", "OBJECT")]

_show = Facts(hidden={"audit_head", "held_until", "version", "refreshed_at", "refreshes"}, empty=(None, "", [], {}))


def _document(record: Approval | Relationship) -> Document:
    return {"key": record.key, **document_of(record)}


def _granted(made: operations.Granted[Any]) -> Document:
    return {**_document(made.record), "warnings": list(made.warnings)}


@command("bot https://api.example.com/data GET --scope tenant:acme --ttl 8h --as olga@example.com", show=_show)
def grant_approval(
    identity: Identity,
    resource: Resource,
    action: Action,
    *,
    scope: InScope,
    ttl: Ttl = None,
    if_exists: Again = IfExists.REFUSE,
    metadata: Metadata = None,
    actor: Actor,
    now: datetime,
) -> Document:
    """Let an identity do an action on a resource within a scope, until its end. Operators may."""
    wanted = Approval(scope, identity, resource, action, actor.name, now, metadata=read_pairs(metadata or (), "--metadata"))
    made = operations.grant(APPROVALS, wanted, ttl_seconds=ttl, if_exists=if_exists, caller=caller_of(actor), now=now)
    return _granted(made)


@command("alice editor document-123 --scope tenant:acme --type role --ttl P30D --as olga@example.com", show=_show)
def add_relationship(
    subject: Subject,
    relation: Relation,
    object_: Object,
    *,
    scope: InScope,
    type_: Annotated[RelationType, Flag("chains go over trust and membership alone", name="--type")],
    ttl: Ttl = None,
    if_exists: Again = IfExists.REFUSE,
    metadata: Metadata = None,
    actor: Actor,
    now: datetime,
) -> Document:
    """Let a subject stand in a relation to an object within a scope, until its end. Operators may."""
    wanted = Relationship(scope, subject, relation, object_, type_, actor.name, now, metadata=read_pairs(metadata or (), "--metadata"))
    made = operations.grant(RELATIONSHIPS, wanted, ttl_seconds=ttl, if_exists=if_exists, caller=caller_of(actor), now=now)
    return _granted(made)


@command("bot https://api.example.com/data GET --scope tenant:acme --as olga@example.com", show=_show)
def revoke_approval(identity: Identity, resource: Resource, action: Action, *, scope: InScope, actor: Actor, now: datetime) -> Document:
    """Let it count no longer, for whomever it is held. Operators may."""
    return _revoked(APPROVALS, scope, (identity, resource, action), actor, now)


@command("alice editor document-123 --scope tenant:acme --as olga@example.com", show=_show)
def remove_relationship(subject: Subject, relation: Relation, object_: Object, *, scope: InScope, actor: Actor, now: datetime) -> Document:
    """Let it count no longer, for whomever it is held. Operators may."""
    return _revoked(RELATIONSHIPS, scope, (subject, relation, object_), actor, now)


def _revoked(ledger: Ledger[Any], scope: Scope, names: Names, actor: Actor, now: datetime) -> Document:
    operations.revoke(ledger, scope, names, caller=caller_of(actor), now=now)
    return {"revoked": True, "scope": scope, **dict(zip(ledger.fields, names, strict=True))}


def _show_answer(document: Document, console: Console) -> None:
    until = f" until {document['until']}" if document["until"] else ""
    say(console, f"yes{until}, by:" if document["allowed"] else "no")
    for record in document["by"]:
        say(console, f"  {record['key']}")


def _answered(answer: Answer) -> Outcome:
    document = {
        "allowed": answer.is_allowed,
        "why": answer.why,
        "until": answer.until,
        "by": [_document(record) for record in answer.by],
    }
    return Outcome(document, "" if answer.is_allowed else answer.words)


@command("bot 'docs/*' GET --scope tenant:acme --as ana@example.com", show=_show_answer)
def check_approval(identity: Identity, resource: Resource, action: Action, *, scope: InScope, actor: Actor, clock: Clock) -> Outcome:
    """Say whether an identity may do an action on a resource, here and now; docs/* asks for anything below docs/. Exit code 1: no.
    For operators and auditors."""
    return _answered(queries.check_set(APPROVALS, scope, (identity, resource, action), caller=caller_of(actor), clock=clock))


@command("leaf trusts root --chain --scope tenant:acme --as ana@example.com", show=_show_answer)
def check_relationship(
    subject: Subject,
    relation: Relation,
    object_: Object,
    *,
    scope: InScope,
    chain: Annotated[bool, Flag("over links of trust and membership, too")] = False,
    depth: Annotated[int | None, Flag("over so many links at most", "N", read_whole_number)] = None,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Say whether a subject stands in a relation to an object, here and now; docs/* asks for anything below docs/. Exit code 1: no.
    For operators and auditors."""
    names, caller = (subject, relation, object_), caller_of(actor)
    if chain or depth is not None:
        return _answered(queries.check_chain(scope, names, depth=depth, caller=caller, clock=clock))
    return _answered(queries.check_set(RELATIONSHIPS, scope, names, caller=caller, clock=clock))


Wide = Annotated[bool, Flag("with the scopes below it: all environments of a tenant, all of a path")]
Ending = Annotated[int | None, Flag("of every scope, what ends within so long", "D", read_duration)]
Count = Annotated[bool, Flag("only how many")]
MaybeScope = Annotated[Scope | None, Flag("all of this scope", "SCOPE", _read_scope)]
_TAIL: Columns = {"scope": "scope", "until": moment("expires_at", otherwise="no end")}


def _show_listed(listing: Listing) -> Callable[[Document, Console], None]:
    def show(document: Document, console: Console) -> None:
        if "count" in document:
            say(console, str(document["count"]))
        else:
            listing(document, console)

    return show


@command(
    "--scope tenant:acme --wide --as ana@example.com",
    show=_show_listed(Listing("records", {"identity": "identity", "resource": "resource", "action": "action", **_TAIL})),
    one_of=("scope", "ending"),
)
def list_approvals(
    *,
    scope: MaybeScope = None,
    identity: Annotated[str | None, Flag("all of this identity in the scope", "IDENTITY")] = None,
    resource: Annotated[str | None, Flag("who may do --action on it in the scope", "RESOURCE")] = None,
    action: Annotated[str | None, Flag("with --resource", "ACTION")] = None,
    wide: Wide = False,
    ending: Ending = None,
    count: Count = False,
    limit: Limit = 200,
    actor: Actor,
    now: datetime,
) -> Document:
    """List or count the approvals that count now. For operators and auditors."""
    if (resource is None) != (action is None):
        raise BadUsage("Give --resource and --action together.", flag="--resource", code="flags_belong_together")
    target = None if resource is None or action is None else (resource, action)
    return _listed(APPROVALS, scope, identity, target, ending, actor, now, wide=wide, count=count, limit=limit)


@command(
    "--scope tenant:acme --object document-123 --as ana@example.com",
    show=_show_listed(
        Listing("records", {"subject": "subject", "relation": "relation", "object": "object", "type": "relation_type", **_TAIL})
    ),
    one_of=("scope", "ending"),
)
def list_relationships(
    *,
    scope: MaybeScope = None,
    subject: Annotated[str | None, Flag("all of this subject in the scope", "SUBJECT")] = None,
    object_: Annotated[str | None, Flag("who stands in a relation to it in the scope", "OBJECT", name="--object")] = None,
    wide: Wide = False,
    ending: Ending = None,
    count: Count = False,
    limit: Limit = 200,
    actor: Actor,
    now: datetime,
) -> Document:
    """List or count the relationships that count now. For operators and auditors."""
    target = None if object_ is None else (object_,)
    return _listed(RELATIONSHIPS, scope, subject, target, ending, actor, now, wide=wide, count=count, limit=limit)


def _listed(
    ledger: Ledger[Any],
    scope: Scope | None,
    holder: str | None,
    target: Sequence[str] | None,
    ending: int | None,
    actor: Actor,
    now: datetime,
    *,
    wide: bool,
    count: bool,
    limit: int,
) -> Document:
    narrowing = [one for one in (holder, target) if one is not None]
    if len(narrowing) > 1 or (narrowing and (scope is None or wide)):
        message = f"Give --scope with --wide, --{ledger.fields[0]} or what it is about, one of them."
        raise BadUsage(message, flag="--scope", code="flags_exclude_each_other")
    caller = caller_of(actor)
    if count and scope is not None and not narrowing:
        return {"count": queries.count_in_scope(ledger, scope, is_wide=wide, caller=caller, now=now)}
    fetch = _fetch(ledger, scope, holder, target, now + timedelta(seconds=ending or 0), wide=wide)
    records, has_more = first(0 if count else limit, lambda cursor: fetch(cursor=cursor, limit=200, caller=caller, now=now))
    return {"count": len(records)} if count else {"records": [_document(one) for one in records], "has_more": has_more}


def _fetch(
    ledger: Ledger[Any], scope: Scope | None, holder: str | None, target: Sequence[str] | None, until: datetime, *, wide: bool
) -> Callable[..., Page[Any]]:
    if scope is None:
        return partial(queries.list_ending, ledger, until=until)
    if holder is not None:
        return partial(queries.list_of_holder, ledger, scope, holder)
    if target is not None:
        return partial(queries.list_of_target, ledger, scope, target)
    return partial(queries.list_in_scope, ledger, scope, is_wide=wide)


_PRESETS = tuple(PRESETS)


@command("tenant:acme --preset temporary --as olga@example.com", show=_show)
def set_ttl_policy(
    scope: InScope,
    *,
    preset: Annotated[str | None, Flag("begin with this one's limits", choices=_PRESETS)] = None,
    default: Annotated[int | None, Flag("how long what is granted without a length lives", "D", read_duration)] = None,
    shortest: Annotated[int | None, Flag("the shortest length", "D", read_duration, name="--min")] = None,
    longest: Annotated[int | None, Flag("the longest length", "D", read_duration, name="--max")] = None,
    refresh: Annotated[int | None, Flag("a check that says yes to a program moves the end so far from now", "D", read_duration)] = None,
    advisory: Annotated[bool, Flag("keep what is outside the limits, with a warning")] = False,
    inherit: Annotated[bool, Flag("no policy of its own: that of the scope above counts")] = False,
    actor: Actor,
    now: datetime,
) -> Document:
    """Say how long records of a scope, and of those below without a policy of their own, may live. What was granted stays.
    Operators may."""
    given = {"default_seconds": default, "min_seconds": shortest, "max_seconds": longest, "refresh_seconds": refresh}
    changes: dict[str, Any] = {name: seconds for name, seconds in given.items() if seconds is not None}
    if inherit == bool(changes or preset or advisory):
        raise BadUsage("Give the limits, or --inherit alone.", flag="--inherit", code="policy_unclear")
    policy = None if inherit else replace(PRESETS[preset] if preset else TtlPolicy(), **changes, is_enforced=not advisory)
    operations.set_policy(scope=scope, policy=policy, caller=caller_of(actor), now=now)
    governed = queries.governing_policy(scope, caller=caller_of(actor))
    return {"scope": scope, "policy_of": governed.scope, **document_of(governed.policy)}


@command("tenant:acme --wait --as olga@example.com", show=_show)
def delete_scope(
    scope: InScope,
    *,
    typed: Annotated[str | None, Flag("its name once more (default: it is asked for)", "SCOPE", name="--name")] = None,
    wait: Annotated[bool, Flag("help the worker, and stay until the receipt is written (a minute at least)")] = False,
    actor: Actor,
    terminal: PortalCommand,
    clock: Clock,
) -> Outcome:
    """Remove every approval and relationship of a scope, but not of those below it. The worker does it; nothing new comes into the
    scope meanwhile. Operators may."""
    caller = caller_of(actor)
    counts = {f"{ledger.word}s": queries.count_in_scope(ledger, scope, caller=caller, now=clock.now()) for ledger in LEDGERS}
    terminal.say(f"{scope}: {counts['approvals']} approvals and {counts['relationships']} relationships count now.")
    if typed is None:
        if not sys.stdin.isatty():
            raise BadUsage("Give the name of the scope once more with --name.", flag="--name", code="scope_not_typed")
        typed = input("Type the name of the scope to delete them: ")
    facts = operations.begin_deletion(scope=scope, typed=typed, caller=caller, now=clock.now())
    failures: Sequence[Failure] = ()
    while wait and facts.state is ScopeState.DELETING and not failures:
        failures = operations.carry_out_deletions(actor=system("delete_scope"), clock=clock).failures
        facts = queries.find_scope(scope, caller=caller)
        terminal.say(f"{facts.removed} removed.")
        if facts.state is ScopeState.DELETING and not failures:
            time.sleep(_LOOK_AGAIN_SECONDS)
    for one in failures:
        terminal.say(f"{one.item}: {one.error}")
    told = {"scope": scope, "state": facts.state, "removed": facts.removed, **counts}
    return Outcome(told, failed(failures, "records can't be removed", one="record can't be removed", then="; the worker tries again."))


_LOOK_AGAIN_SECONDS = 5.0


@command("--from global --to tenant:acme --dry-run --as olga@example.com", show=show_report)
def scope_records(
    *,
    source: Annotated[Scope, Flag("where they are", "SCOPE", _read_scope, name="--from")],
    to: Annotated[Scope, Flag("where they come to", "SCOPE", _read_scope)],
    dry_run: Annotated[bool, Flag("only say how many")] = False,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Bring the records of a scope into another one, each with its end, in a transaction of its own; may be stopped at any time and done
    again. What a request holds stays where it is. Operators may."""
    report = operations.move_records(source=source, to=to, apply=not dry_run, caller=caller_of(actor), clock=clock)
    return Outcome(report, failed(report.failures, "records stay where they are.", one="record stays where it is."))


@command("--json", show=show_report)
def sweep_authz(*, clock: Clock) -> Outcome:
    """Remove what is over, with an event for each, as the worker does every hour. It counted for nothing before."""
    report = operations.sweep(actor=system("sweep_authz"), clock=clock)
    return Outcome(report, failed(report.failures, "records failed", one="record failed", then="; the next run tries again."))
