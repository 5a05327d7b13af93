"""Power for a time leaves nothing for good: every operation there is, by somebody who is so for good and by somebody who isn't."""

from __future__ import annotations

import enum
import importlib
import inspect
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from accessportal.access_requests import operations as access_requests
from accessportal.access_requests import queries as requests
from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import CommentKind
from accessportal.audit import operations as audit
from accessportal.authz import operations as authz
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import Approval, TtlPolicy
from accessportal.directory import operations as directory
from accessportal.directory import queries
from accessportal.directory.operations.claims import add_claim
from accessportal.directory.states import Claim, GroupRole, State
from accessportal.identity.queries import actor_named
from accessportal.kernel.actors import Actor, Role, person, system
from accessportal.kernel.clock import whole_second
from accessportal.kernel.errors import NotAllowed, NotFound
from accessportal.kernel.lasting import FOR_A_TIME, Right, rule_on_effect
from accessportal.leases import operations as leases
from accessportal.leases import queries as leases_seen
from accessportal.leases.states import Lease
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes.states import RunKind
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from tests.fixtures_story import RULES, Story

ROOMS = (
    *("access_requests", "assignments", "audit", "authz", "catalog", "directory", "evidence", "identity", "leases", "mirror"),
    *("rules", "sandboxes", "tokens", "waiting"),
)
ACME = read_scope("tenant:acme")
PAYMENTS = "/engineering/payments"
SETUP = system("setup")
SETUP_OPERATOR = person("olga@example.com", roles=frozenset({Role.OPERATOR}))


class Leaves(enum.Enum):
    """What an operation leaves behind of its actor's power."""

    FOR_GOOD = "something without an end: refused to whom the right ends"
    GIVEN = "something given: it ends with the right"
    ENDS = "something that has an end of its own"
    NO_POWER = "the care of things: nobody may more or less by it, and whoever is responsible next can undo it"
    OWN = "nothing of a person's: the portal does it by itself, or a person for themselves alone"


@dataclass(frozen=True)
class Who:
    """The same people with rights for good, or all of them for an hour."""

    operator: Actor
    admin: Actor
    approver: Actor
    asker: Actor
    until: datetime | None


Run = Callable[[Story, Who], Any]


def _for_good(story: Story) -> Who:
    olga = actor_named(email="olga@example.com", now=story.clock.now())
    return Who(operator=olga, admin=olga, approver=story.bob, asker=story.alice, until=None)


def _for_an_hour(story: Story) -> Who:
    now = story.clock.now()
    until = now + timedelta(hours=1)
    for email, group_id, role in (
        ("sam@example.com", "/", GroupRole.ADMIN),
        ("sam@example.com", "/portal/operators", GroupRole.READER),
        ("ana@example.com", "/security", GroupRole.READER),
        ("ana@example.com", PAYMENTS, GroupRole.READER),
    ):
        claim = Claim(f"r-{group_id}", role, ends_at=until)
        add_claim(email=email, group_id=group_id, claim=claim, guards=(), actor=SETUP, now=now)
    sam, ana = (actor_named(email=email, now=now) for email in ("sam@example.com", "ana@example.com"))
    assert (sam.is_operator, sam.operator_until) == (True, until)
    return Who(operator=sam, admin=sam, approver=ana, asker=ana, until=until)


def _name_stand_in(story: Story, approver: Actor) -> StandIn:
    now = story.clock.now()
    return access_requests.name_stand_in(
        email="gina@example.com", starts_at=now, ends_at=now + timedelta(days=1), submission_id="form", actor=approver, now=now
    )


def _ask_back(story: Story, who: Who) -> None:
    asked = story.ask_for_prod()
    access_requests.comment(
        request_id=asked.request_id, kind=CommentKind.QUESTION, text="Why?", submission_id="form", actor=who.approver, now=story.clock.now()
    )


def _order_removal(story: Story, who: Who) -> None:
    now = story.clock.now()
    audit.order_removal(before=now - timedelta(days=90), keep_days=90, actor=who.operator, now=now)


def _end_stand_in(story: Story, who: Who) -> None:
    one = _name_stand_in(story, story.bob)
    access_requests.end_stand_in(stand_in=one.stand_in, stand_in_id=one.stand_in_id, actor=who.operator, now=story.clock.now())


def _grant(story: Story, who: Who) -> datetime | None:
    where = {"email": "mallory@example.com", "group_id": PAYMENTS}
    directory.grant_membership(**where, role=GroupRole.READER, actor=who.admin, now=story.clock.now())
    membership = queries.find_membership(**where)
    assert membership is not None
    return membership.ends_at(story.clock.now())


def _delete_group(story: Story, who: Who) -> None:
    new = {"group_id": "/engineering/empty", "name": "Empty", "description": ""}
    directory.create_group(**new, actor=SETUP, now=story.clock.now())
    directory.delete_group(group_id="/engineering/empty", actor=who.admin, now=story.clock.now())


def _forget_identity(story: Story, who: Who) -> None:
    directory.record_sign_in(
        email="mallory@example.com", identity="https://issuer.example#m", method="m", actor=story.mallory, now=story.clock.now()
    )
    directory.forget_identity(email="mallory@example.com", actor=who.admin, now=story.clock.now())


def _create_token(story: Story, who: Who) -> datetime | None:
    return tokens.create_token(name="Lab", scope=Scope.ADMIN, actor=who.operator, now=story.clock.now()).token.expires_at


def _revoke_token(story: Story, who: Who) -> None:
    made = tokens.create_token(name="Lab", scope=Scope.ADMIN, actor=SETUP, now=story.clock.now())
    tokens.revoke_token(token_id=made.token.token_id, actor=who.operator, now=story.clock.now())


def _revoke_every_token(story: Story, who: Who) -> None:
    now = story.clock.now()
    tokens.create_token(name="Lab", scope=Scope.ADMIN, actor=SETUP, now=now)
    made_before = now + timedelta(minutes=1)
    assert len(tokens.revoke_every_token(made_before=made_before, keep=(), reason="Restored", actor=who.operator, now=now)) == 1


def _begin_erasure(story: Story, who: Who) -> None:
    audit.begin_erasure(pseudonym="person-of-somebody", further=(), actor=who.operator, now=story.clock.now())


def _begin_restore(story: Story, who: Who) -> None:
    now = story.clock.now()
    audit.begin_restore(restored_to=now - timedelta(hours=1), actor=who.operator, now=now)


def _confirm_restore(story: Story, who: Who) -> None:
    now = story.clock.now()
    begun = audit.begin_restore(restored_to=now - timedelta(hours=1), actor=SETUP_OPERATOR, now=now)
    audit.confirm_restore(begun, counts={}, actor=who.operator, now=now)


def _apply_rules(story: Story, who: Who) -> None:
    text = yaml.safe_dump({"rules": yaml.safe_load(RULES)["rules"][:-1]})
    rules.apply_rules(text=text, actor=who.operator, now=story.clock.now())


def _retry(story: Story, who: Who) -> None:
    access_requests.retry(request_id=story.ask().request_id, actor=who.operator, now=story.clock.now())


def _extend(story: Story, who: Who) -> None:
    request = story.ask(actor=who.asker)
    story.clock.advance(60)
    story.extend(request, 3600, actor=who.asker)


def _added(story: Story, actor: Actor = SETUP) -> str:
    added = sandboxes.add(external_id="ext-1", name="lab-1", lab_duration_hours=4, actor=actor, now=story.clock.now())
    return added.sandbox_id


def _quarantine(story: Story, who: Who) -> None:
    sandboxes.quarantine(sandbox_id=_added(story), reason="Odd", actor=who.operator, now=story.clock.now())


def _restore(story: Story, who: Who) -> None:
    sandbox_id = _added(story)
    sandboxes.quarantine(sandbox_id=sandbox_id, reason="Odd", actor=SETUP, now=story.clock.now())
    sandboxes.restore(sandbox_id=sandbox_id, actor=who.operator, now=story.clock.now())


def _release_by_operator(story: Story, who: Who) -> None:
    sandbox_id = _added(story)
    sandboxes.take(key="track-1", track="track-1", actor=system("client"), now=story.clock.now())
    sandboxes.release_by_operator(sandbox_id=sandbox_id, reason="Needed", actor=who.operator, now=story.clock.now())


def _approval(story: Story, actor: Actor) -> datetime | None:
    """What the actor grants, without saying how long."""
    endless = TtlPolicy(is_enforced=False)
    authz.set_policy(scope=ACME, policy=endless, caller=caller_of(SETUP), now=story.clock.now())
    asked = Approval(ACME, "bot", "doc", "GET", actor.name, story.clock.now())
    return authz.grant(APPROVALS, asked, caller=caller_of(actor), now=story.clock.now()).record.expires_at


def _extend_approval(story: Story, who: Who) -> datetime | None:
    _approval(story, SETUP)
    given: Any = {"ttl_seconds": None, "caller": caller_of(who.operator), "now": story.clock.now()}
    return authz.extend(APPROVALS, ACME, ("bot", "doc", "GET"), **given).record.expires_at


def _revoke_approval(story: Story, who: Who) -> None:
    _approval(story, SETUP)
    authz.revoke(APPROVALS, ACME, ("bot", "doc", "GET"), caller=caller_of(who.operator), now=story.clock.now())


def _delete_scope(story: Story, who: Who) -> None:
    _approval(story, SETUP)
    authz.begin_deletion(scope=ACME, typed=ACME, caller=caller_of(who.operator), now=story.clock.now())


def _move_records(story: Story, who: Who) -> None:
    other = read_scope("tenant:other")
    authz.move_records(source=ACME, to=other, apply=True, caller=caller_of(who.operator), clock=story.clock)


def _set_policy(story: Story, who: Who) -> None:
    authz.set_policy(scope=ACME, policy=None, caller=caller_of(who.operator), now=story.clock.now())


def _admins(operation: Callable[..., Any], **given: Any) -> Run:
    return lambda story, who: operation(**given, actor=who.admin, now=story.clock.now())


_ACCOUNT, _WHY = "111111111111", "It has strayed."


def _account(story: Story, actor: Actor) -> None:
    leases.add_accounts([leases.NewAccount(_ACCOUNT)], pool="labs", actor=actor, now=story.clock.now())


def _on_an_account(operation: Callable[..., Any], **given: Any) -> Run:
    """Olga has the account put out of use before: each of the operations has something to do then."""

    def run(story: Story, who: Who) -> None:
        _account(story, SETUP)
        leases.quarantine(account_id=_ACCOUNT, reason=_WHY, actor=SETUP_OPERATOR, now=story.clock.now())
        operation(account_id=_ACCOUNT, actor=who.operator, now=story.clock.now(), **given)

    return run


def _lease(story: Story) -> str:
    now, lease_id = story.clock.now(), str(uuid.UUID(int=1))
    _account(story, SETUP)
    leases.make_available(leases_seen.get_account(account_id=_ACCOUNT), certificate={}, actor=SETUP, now=now)
    asked = leases.Asked(
        claim=lease_id,
        lease_id=lease_id,
        user="alice@example.com",
        pool="labs",
        permission_set="Lab",
        duration_seconds=3600,
        most_held=1,
    )
    taken = leases.take(asked, lapses_at=now + timedelta(hours=1), actor=SETUP, clock=story.clock)
    assert isinstance(taken, Lease)
    leases.start(claim=lease_id, lease_id=lease_id, proved_at=now, actor=SETUP, now=now)
    return lease_id


def _freeze(story: Story, who: Who) -> None:
    leases.freeze(lease_id=_lease(story), reason=_WHY, actor=who.operator, now=story.clock.now())


def _unfreeze(story: Story, who: Who) -> None:
    lease_id = _lease(story)
    leases.freeze(lease_id=lease_id, reason=_WHY, actor=SETUP_OPERATOR, now=story.clock.now())
    leases.unfreeze(lease_id=lease_id, actor=who.operator, now=story.clock.now())


_ALICE, _MALLORY = {"email": "alice@example.com"}, {"email": "mallory@example.com"}
_ADMIN = {"admin_email": "olga@example.com", "admin_name": "Olga"}
TABLE: dict[str, tuple[Leaves, Run | None]] = {
    "access_requests.approve": (Leaves.ENDS, lambda story, who: story.approve(story.ask_for_prod(), actor=who.approver)),
    "access_requests.cancel": (Leaves.OWN, None),
    "access_requests.carry_out": (Leaves.OWN, None),
    "access_requests.carry_out_served": (Leaves.OWN, None),
    "access_requests.comment": (Leaves.NO_POWER, _ask_back),
    "access_requests.compare_assignments": (Leaves.OWN, None),
    "access_requests.compare_subjects": (
        Leaves.ENDS,
        lambda story, who: access_requests.compare_subjects(actor=who.operator, clock=story.clock),
    ),
    "access_requests.configure": (Leaves.OWN, None),
    "access_requests.deny": (Leaves.ENDS, lambda story, who: story.deny(story.ask_for_prod(), actor=who.approver)),
    "access_requests.end": (Leaves.ENDS, lambda story, who: story.end(story.ask(), actor=who.operator)),
    "access_requests.end_departed": (Leaves.OWN, None),
    "access_requests.end_lost": (Leaves.OWN, None),
    "access_requests.end_stand_in": (Leaves.NO_POWER, _end_stand_in),
    "access_requests.expire": (Leaves.OWN, None),
    "access_requests.extend": (Leaves.ENDS, _extend),
    "access_requests.freeze_leases": (Leaves.OWN, None),
    "access_requests.lapse": (Leaves.OWN, None),
    "access_requests.last_report": (Leaves.OWN, None),
    "access_requests.lifted_limits": (Leaves.OWN, None),
    "access_requests.mind_budgets": (Leaves.OWN, None),
    # Nobody decides by it once the approver may not: tests/access_requests/test_standing_in.py.
    "access_requests.name_stand_in": (Leaves.ENDS, lambda story, who: _name_stand_in(story, who.approver)),
    "access_requests.reconcile_assignments": (Leaves.OWN, None),
    "access_requests.retry": (Leaves.NO_POWER, _retry),
    "access_requests.submit": (Leaves.ENDS, lambda story, who: story.ask(actor=who.asker)),
    "access_requests.take_back": (Leaves.OWN, None),
    "access_requests.tick": (Leaves.OWN, None),
    "access_requests.watch_ends": (Leaves.OWN, None),
    "assignments.compare": (Leaves.OWN, None),
    "assignments.configure": (Leaves.OWN, None),
    "assignments.go_on": (Leaves.OWN, None),
    "assignments.hold": (Leaves.OWN, None),
    "assignments.is_still_so": (Leaves.OWN, None),
    "assignments.raise_fences": (Leaves.OWN, None),
    "assignments.release": (Leaves.OWN, None),
    "assignments.repair": (Leaves.OWN, None),
    # Whoever is on call looks after the tables; what a confirmed restore lets go on was decided by others.
    "audit.begin_erasure": (Leaves.FOR_GOOD, _begin_erasure),
    "audit.begin_restore": (Leaves.NO_POWER, _begin_restore),
    "audit.change": (Leaves.OWN, None),
    "audit.configure": (Leaves.OWN, None),
    "audit.confirm_restore": (Leaves.NO_POWER, _confirm_restore),
    "audit.end_erasure": (Leaves.OWN, None),
    "audit.insert": (Leaves.OWN, None),
    "audit.new_key": (Leaves.OWN, None),
    "audit.note_step": (Leaves.OWN, None),
    "audit.order_removal": (Leaves.FOR_GOOD, _order_removal),
    "audit.prepare_event": (Leaves.OWN, None),
    "audit.pseudonyms": (Leaves.OWN, None),
    "audit.publish_outbox": (Leaves.OWN, None),
    "audit.read_keys": (Leaves.OWN, None),
    "audit.read_pseudonyms": (Leaves.OWN, None),
    "audit.remove_chain": (Leaves.OWN, None),
    "audit.require_removing_right": (Leaves.OWN, None),
    "audit.remove": (Leaves.OWN, None),
    "audit.require_erasing_right": (Leaves.OWN, None),
    "audit.require_restore_right": (Leaves.OWN, None),
    "audit.take_out": (Leaves.OWN, None),
    "audit.told": (Leaves.OWN, None),
    "audit.topic_sender": (Leaves.OWN, None),
    "authz.begin_deletion": (Leaves.FOR_GOOD, _delete_scope),
    "authz.carry_out_deletions": (Leaves.OWN, None),
    "authz.check_holdable": (Leaves.OWN, None),
    "authz.configure": (Leaves.OWN, None),
    "authz.extend": (Leaves.GIVEN, _extend_approval),
    "authz.grant": (Leaves.GIVEN, lambda story, who: _approval(story, who.operator)),
    "authz.hold": (Leaves.OWN, None),
    "authz.holders_of": (Leaves.OWN, None),
    "authz.let_go": (Leaves.OWN, None),
    "authz.move_records": (Leaves.FOR_GOOD, _move_records),
    # Whoever is on call stops what has strayed; it can be granted again.
    "authz.revoke": (Leaves.NO_POWER, _revoke_approval),
    "authz.set_policy": (Leaves.FOR_GOOD, _set_policy),
    "authz.sweep": (Leaves.OWN, None),
    "catalog.forget_people": (Leaves.OWN, None),
    "catalog.sync_catalog": (Leaves.OWN, None),
    "tokens.authenticate": (Leaves.OWN, None),
    "tokens.claim_request": (Leaves.OWN, None),
    "tokens.create_token": (Leaves.GIVEN, _create_token),
    "tokens.require_maker": (Leaves.OWN, None),
    "tokens.require_track": (Leaves.OWN, None),
    # Whoever is on call stops a token that has strayed; a program gets another one.
    "tokens.revoke_every_token": (Leaves.NO_POWER, _revoke_every_token),
    "tokens.revoke_token": (Leaves.NO_POWER, _revoke_token),
    "directory.continue_deleting": (Leaves.OWN, None),
    "directory.create_group": (
        Leaves.FOR_GOOD,
        _admins(directory.create_group, group_id=f"{PAYMENTS}/new", name="New", description=""),
    ),
    "directory.create_person": (
        Leaves.FOR_GOOD,
        _admins(directory.create_person, email="new@example.com", name="New", group_id=PAYMENTS, role=GroupRole.READER),
    ),
    "directory.delete_group": (Leaves.FOR_GOOD, _delete_group),
    "directory.delete_person": (Leaves.FOR_GOOD, _admins(directory.delete_person, **_MALLORY)),
    "directory.following_later": (Leaves.OWN, None),
    "directory.forget_identity": (Leaves.FOR_GOOD, _forget_identity),
    "directory.found_directory": (
        Leaves.FOR_GOOD,
        _admins(directory.found_directory, **_ADMIN, operator_group="/portal/operators", auditor_group="/portal/auditors"),
    ),
    "directory.grant_membership": (Leaves.GIVEN, _grant),
    "directory.leave_group": (Leaves.OWN, None),
    "directory.letting_go": (Leaves.OWN, None),
    "directory.move_group": (Leaves.FOR_GOOD, _admins(directory.move_group, group_id=PAYMENTS, parent_id="/security")),
    "directory.record_sign_in": (Leaves.OWN, None),
    "directory.record_sign_out": (Leaves.OWN, None),
    "directory.rename_group": (Leaves.FOR_GOOD, _admins(directory.rename_group, group_id=PAYMENTS, name="Ours", description="")),
    "directory.rename_person": (Leaves.FOR_GOOD, _admins(directory.rename_person, **_ALICE, name="Alicia")),
    "directory.revoke_membership": (Leaves.FOR_GOOD, _admins(directory.revoke_membership, **_ALICE, group_id=PAYMENTS)),
    "directory.set_group_state": (Leaves.FOR_GOOD, _admins(directory.set_group_state, group_id=PAYMENTS, state=State.DISABLED)),
    "directory.set_person_state": (Leaves.FOR_GOOD, _admins(directory.set_person_state, **_ALICE, state=State.DISABLED)),
    "directory.settle_departure": (Leaves.OWN, None),
    "evidence.export": (Leaves.OWN, None),
    "identity.admit": (Leaves.OWN, None),
    "identity.end_every_session": (Leaves.OWN, None),
    "identity.ensure_demo_user": (Leaves.OWN, None),
    "identity.ensure_user": (Leaves.OWN, None),
    "identity.record_password_sign_in": (Leaves.OWN, None),
    "identity.record_refusal": (Leaves.OWN, None),
    "identity.record_sign_out": (Leaves.OWN, None),
    "leases.asked_at": (Leaves.OWN, None),
    "leases.add_accounts": (Leaves.NO_POWER, lambda story, who: _account(story, who.operator)),
    "leases.anything_goes": (Leaves.OWN, None),
    "leases.check_pool": (Leaves.OWN, None),
    "leases.clean_account": (Leaves.OWN, None),
    "leases.clean_accounts": (Leaves.OWN, None),
    "leases.configure": (Leaves.OWN, None),
    "leases.count_accounts": (Leaves.OWN, None),
    "leases.freeze": (Leaves.NO_POWER, _freeze),
    "leases.has_units": (Leaves.OWN, None),
    "leases.is_cleaner_set": (Leaves.OWN, None),
    "leases.is_spend_read": (Leaves.OWN, None),
    "leases.keep_counts": (Leaves.OWN, None),
    "leases.let_go": (Leaves.OWN, None),
    "leases.make_available": (Leaves.OWN, None),
    "leases.note_access_off": (Leaves.OWN, None),
    "leases.note_access_on": (Leaves.OWN, None),
    "leases.note_verdict": (Leaves.OWN, None),
    "leases.prolong": (Leaves.OWN, None),
    "leases.put_off": (Leaves.OWN, None),
    "leases.quarantine": (Leaves.NO_POWER, _on_an_account(leases.quarantine, reason=_WHY)),
    "leases.read_spend": (Leaves.OWN, None),
    "leases.require_cleaner": (Leaves.OWN, None),
    "leases.restore": (Leaves.NO_POWER, _on_an_account(leases.restore)),
    "leases.retire": (Leaves.NO_POWER, _on_an_account(leases.retire, reason=_WHY)),
    "leases.revive": (Leaves.OWN, None),
    "leases.serve_line": (Leaves.OWN, None),
    "leases.settle_restore": (Leaves.OWN, None),
    "leases.start": (Leaves.OWN, None),
    "leases.sync_pool": (Leaves.OWN, None),
    "leases.take": (Leaves.OWN, None),
    "leases.unfreeze": (Leaves.NO_POWER, _unfreeze),
    "mirror.compare_mirror": (Leaves.OWN, None),
    "mirror.configure": (Leaves.OWN, None),
    "mirror.disable_as_mirrored": (Leaves.OWN, None),
    "mirror.ensure_user_pool": (Leaves.OWN, None),
    "mirror.hold_membership": (Leaves.OWN, None),
    "mirror.release_membership": (Leaves.OWN, None),
    "mirror.sweep_mirror": (Leaves.OWN, None),
    "rules.apply_rules": (Leaves.FOR_GOOD, _apply_rules),
    "rules.plan_rules": (Leaves.OWN, None),
    "sandboxes.add": (Leaves.NO_POWER, lambda story, who: _added(story, who.operator)),
    "sandboxes.clean": (Leaves.OWN, None),
    "sandboxes.clean_restored": (Leaves.OWN, None),
    "sandboxes.configure": (Leaves.OWN, None),
    "sandboxes.count": (Leaves.OWN, None),
    "sandboxes.expire": (Leaves.OWN, None),
    "sandboxes.forget_old": (Leaves.OWN, None),
    "sandboxes.hold": (Leaves.OWN, None),
    "sandboxes.let_go": (Leaves.OWN, None),
    "sandboxes.mend": (Leaves.OWN, None),
    "sandboxes.order_run": (
        Leaves.NO_POWER,
        lambda story, who: sandboxes.order_run(kind=RunKind.CLEANUP, actor=who.operator, now=story.clock.now()),
    ),
    "sandboxes.perform_due_runs": (Leaves.OWN, None),
    "sandboxes.perform_run": (Leaves.OWN, None),
    "sandboxes.quarantine": (Leaves.NO_POWER, _quarantine),
    "sandboxes.release": (Leaves.OWN, None),
    "sandboxes.release_by_operator": (Leaves.ENDS, _release_by_operator),
    "sandboxes.restore": (Leaves.NO_POWER, _restore),
    "sandboxes.revive": (Leaves.OWN, None),
    "sandboxes.serve_line": (Leaves.OWN, None),
    "sandboxes.settle_restore": (Leaves.OWN, None),
    "sandboxes.sync": (Leaves.OWN, None),
    "sandboxes.take": (Leaves.OWN, None),
    "waiting.join": (Leaves.OWN, None),
    "waiting.leave": (Leaves.OWN, None),
    "waiting.note_cleanings": (Leaves.OWN, None),
    "waiting.served": (Leaves.OWN, None),
}
ASKED = [(name, leaves, run) for name, (leaves, run) in TABLE.items() if run is not None]


def _every_operation() -> set[str]:
    found = set()
    for room in ROOMS:
        module = importlib.import_module(f"accessportal.{room}.operations")
        for name, value in vars(module).items():
            is_own = name in getattr(module, "__all__", ()) or getattr(value, "__module__", "") == module.__name__
            if inspect.isroutine(value) and is_own and not name.startswith("_"):
                found.add(f"{room}.{name}")
    return found


def test_every_operation_of_the_product_is_in_the_table() -> None:
    assert _every_operation() == TABLE.keys()
    assert {name for name, (leaves, run) in TABLE.items() if run is None} == {
        name for name, (leaves, _) in TABLE.items() if leaves is Leaves.OWN
    }


@pytest.mark.parametrize(("name", "leaves", "run"), ASKED, ids=[name for name, _, _ in ASKED])
def test_with_a_right_for_good(story: Story, name: str, leaves: Leaves, run: Run) -> None:
    end = run(story, _for_good(story))
    if leaves is Leaves.GIVEN:
        assert end is None


@pytest.mark.parametrize(("name", "leaves", "run"), ASKED, ids=[name for name, _, _ in ASKED])
def test_with_a_right_for_an_hour(story: Story, name: str, leaves: Leaves, run: Run) -> None:
    who = _for_an_hour(story)
    if leaves is Leaves.FOR_GOOD:
        with pytest.raises(NotAllowed, match="only until 2026-03-02 10:00 UTC") as refused:
            run(story, who)
        assert refused.value.code == FOR_A_TIME
        return
    end = run(story, who)
    if leaves is Leaves.GIVEN:
        assert end == who.until


NOW = datetime.fromisoformat("2026-03-02T09:00:00+00:00")
SOON, LATER = NOW + timedelta(hours=1), NOW + timedelta(hours=2)


@pytest.mark.parametrize(
    ("right_ends", "effect_ends", "can_end", "is_allowed", "ends"),
    [
        (None, None, False, True, None),
        (None, None, True, True, None),
        (None, LATER, True, True, LATER),
        (SOON, None, False, False, None),
        (SOON, LATER, False, True, LATER),
        (SOON, None, True, True, SOON),
        (SOON, LATER, True, True, SOON),
        (LATER, SOON, True, True, SOON),
    ],
)
def test_the_law(
    right_ends: datetime | None, effect_ends: datetime | None, ends: datetime | None, *, can_end: bool, is_allowed: bool
) -> None:
    ruling = rule_on_effect(Right("an operator", right_ends), ends_at=effect_ends, can_end=can_end)
    assert (ruling.decision.allowed, ruling.ends_at) == (is_allowed, ends)
    if not is_allowed:
        assert "You are an operator only until 2026-03-02 10:00 UTC" in ruling.decision.reason
        assert "Ask somebody who is so without an end." in ruling.decision.reason


def test_a_group_is_not_brought_below_ones_own_by_deleting_and_making_it_anew(story: Story) -> None:
    """Sam is admin of a place of his own for good, and of payments for an hour. Rules know payments by its path."""
    now = story.clock.now()
    directory.create_group(group_id="/sams", name="Sam's", description="", actor=SETUP, now=now)
    directory.grant_membership(email="sam@example.com", group_id="/sams", role=GroupRole.ADMIN, actor=SETUP, now=now)
    directory.create_group(group_id=f"{PAYMENTS}/empty", name="Empty", description="", actor=SETUP, now=now)
    claim = Claim("r-1", GroupRole.ADMIN, ends_at=now + timedelta(hours=1))
    add_claim(email="sam@example.com", group_id="/engineering", claim=claim, guards=(), actor=SETUP, now=now)
    steps: list[Callable[[], Any]] = [
        lambda: directory.move_group(group_id=PAYMENTS, parent_id="/sams", actor=story.sam, now=now),
        lambda: directory.delete_group(group_id=f"{PAYMENTS}/empty", actor=story.sam, now=now),
        lambda: directory.create_group(
            group_id=f"{PAYMENTS}/other", name="Other", description="", parent_id="/sams", actor=story.sam, now=now
        ),
    ]
    for step in steps:
        with pytest.raises(NotAllowed, match="only until") as refused:
            step()
        assert refused.value.code == FOR_A_TIME


def _admin_by_request(story: Story, email: str, group_id: str) -> None:
    claim = Claim(f"r-{email}", GroupRole.ADMIN, ends_at=story.clock.now() + timedelta(hours=1))
    add_claim(email=email, group_id=group_id, claim=claim, guards=(), actor=SETUP, now=story.clock.now())


def _deciders(story: Story, request: AccessRequest) -> set[str]:
    return {one.email for one in requests.ApproverBook(now=story.clock.now()).of_request(request).people}


def test_admins_by_request_do_not_keep_each_other_admins(story: Story) -> None:
    _admin_by_request(story, "sam@example.com", "/engineering")
    asked = story.ask_to_join(role="admin")

    with pytest.raises(NotFound):
        story.approve(asked, actor=story.sam)
    assert _deciders(story, asked) == {"gina@example.com", "olga@example.com"}
    assert story.approve(asked, actor=story.gina).status is Status.ACTIVE
    # What gives no such right has its own end, and that is enough.
    assert story.approve(story.ask_to_join(role="contributor"), actor=story.sam).status is Status.ACTIVE


def test_approvers_for_a_time_let_nobody_become_one(story: Story) -> None:
    """Whoever is in ``/security`` approves ``stand-in-operators``; and operators stand in for approvers everywhere."""
    now = story.clock.now()
    claim = Claim("r-1", GroupRole.READER, ends_at=now + timedelta(hours=1))
    add_claim(email="gina@example.com", group_id="/security", claim=claim, guards=(), actor=SETUP, now=now)
    asked = access_requests.submit(
        kind="group",
        subject_id=None,
        target={"group": "/portal/operators", "role": "contributor"},
        duration_seconds=3600,
        reason="On call",
        ticket_id="",
        submission_id="form",
        actor=story.alice,
        now=now,
    )
    with pytest.raises(NotFound):
        story.approve(asked, actor=story.gina)
    assert _deciders(story, asked) == {"bob@example.com", "sam@example.com"}
    assert story.approve(asked, actor=story.bob).status is Status.ACTIVE
    assert story.approve(story.ask_for_prod(), actor=story.gina).status is Status.ACTIVE, "AWS access ends by itself"


def test_who_has_left_between_two_looks_lets_nobody_in(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule was judged by a membership that is gone by now: none that is left is no membership without an end."""
    with monkeypatch.context() as patch:
        patch.setattr(queries, "find_person_with_ends", lambda **_: (None, {}))
        with pytest.raises(NotAllowed) as refused:
            story.ask_to_join(submission_id="left")
    assert refused.value.code == "outlasts_membership"
    assert story.ask_to_join(submission_id="left").status is Status.ACTIVE


def test_a_member_for_a_time_does_not_let_themselves_in_for_longer(story: Story) -> None:
    """Whoever is in engineering may look around in it without approval: so could one who is let in for an hour, again and again."""
    start = story.clock.now()
    claim = Claim("r-1", GroupRole.READER, ends_at=start + timedelta(hours=1))
    add_claim(email="mallory@example.com", group_id=PAYMENTS, claim=claim, guards=(), actor=SETUP, now=start)

    with pytest.raises(NotAllowed, match="admits you only until 2026-03-02 10:00 UTC") as refused:
        story.ask_to_join(actor=story.mallory, seconds=3601)
    assert refused.value.code == "outlasts_membership"
    assert "Ask for at most 1 h" in str(refused.value)
    story.clock.advance(1800)
    look = story.ask_to_join(actor=story.mallory, seconds=1800, submission_id="look")
    assert look.expires_at == claim.ends_at
    story.carry_out(look)
    with pytest.raises(NotAllowed, match="at most 30 min"):
        story.ask_to_join(actor=story.mallory, group=PAYMENTS, seconds=3600)
    assert story.ask_to_join(seconds=8 * 3600).status is Status.ACTIVE, "Alice is there for good"


def test_the_end_of_a_role_by_request_takes_what_was_given_with_it(story: Story) -> None:
    """Alice is made admin by a request, gives Mallory a role, and the request is ended early."""
    asked = story.ask_to_join(group=PAYMENTS, role="admin", seconds=7200)
    story.approve(asked, actor=story.gina)
    granted = story.carry_out(asked)
    directory.grant_membership(
        email="mallory@example.com", group_id=PAYMENTS, role=GroupRole.READER, actor=story.alice, now=story.clock.now()
    )
    membership = queries.find_membership(email="mallory@example.com", group_id=PAYMENTS)
    assert membership is not None
    assert membership.ends_at(story.clock.now()) == whole_second(granted.expires_at)

    story.end(granted)
    assert story.carry_out(granted).status is Status.REVOKED

    assert queries.find_membership(email="mallory@example.com", group_id=PAYMENTS) is None
    assert story.role_of("alice@example.com", PAYMENTS) is GroupRole.CONTRIBUTOR
