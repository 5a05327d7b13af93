"""What the events of each kind of entity mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from accessportal.assignments.states import OUTSIDE_CLAIM
from accessportal.audit.states import AuditEvent
from accessportal.authz.states import DIRECT
from accessportal.directory.states import PERMANENT, ROOT, is_by_admin
from accessportal.history.policy import TREE
from accessportal.history.policy.folding import Chain, Look, moment_in
from accessportal.history.states import Mark, Thing, ThingKind
from accessportal.kernel.clock import from_epoch
from accessportal.sandboxes.states import PEOPLES_KEYS, PEOPLES_TRACKS
from accessportal.store.keys import split_key
from accessportal.store.reading import BROKEN


def tells(event: AuditEvent) -> bool:
    """Whether it tells of access; after others nothing is read."""
    verbs, _ = _READERS.get(event.entity.partition("#")[0], _NOBODY)
    return event.action.partition(".")[2] in verbs


def fold(mark: Mark, events: Iterable[AuditEvent], look: Look, *, past: Callable[[AuditEvent, str], object]) -> Mark:
    """The mark after ``events``, which follow it; what changed is to be written. Nothing may be left to be written before. ``past`` is
    told of each event that was changed after it was written, or makes no sense: it is passed over."""
    chain, read = Chain(mark, look), _READERS[mark.entity.partition("#")[0]][1]
    sequence, head = mark.sequence, mark.head
    for event in events:
        if event.flaw:
            past(event, event.flaw)
        elif tells(event):
            try:
                read(chain, event)
            except BROKEN as error:
                past(event, f"makes no sense ({error})")
        sequence, head = event.sequence, event.hash
    shown = {one.key for one in mark.open}
    # Opened and over in one step, it never had an open row.
    keys = tuple(one.key for one in chain.changed if one.key in shown)
    return mark.to(sequence=sequence, head=head, open=chain.open, to_write=chain.changed, shown=keys, facts=chain.facts)


def _assignment(chain: Chain, event: AuditEvent) -> None:
    """Access to an account: by each claim, while the assignment is there. ``claims``: by id, for whom, since when, and when given back."""
    claims: dict[str, list[Any]] = {name: list(told) for name, told in chain.facts.get("claims", {}).items()}
    phase, at = chain.facts.get("phase", "ABSENT"), event.at.timestamp()
    began_at = chain.facts.get("began_at")
    claim, verb = str(event.data.get("claim", "")), event.action.partition(".")[2]
    if verb == "claimed":
        # What was given back, and is held by somebody else now, is over for the one.
        chain.close((chain.find(name) for name, told in claims.items() if told[2] and name != claim), event)
        claims = {name: told for name, told in claims.items() if not told[2]} | {claim: [event.subject, at, 0]}
        present = chain.find(claim)
        if present is not None:
            chain.change(present, ended_at=None, ended_by="")
        elif phase in ("PRESENT", "DELETING"):
            _begin_claim(chain, event, claim, claims[claim])
    elif verb == "released" and claim in claims:
        held = chain.find(claim)
        if any(not told[2] for name, told in claims.items() if name != claim):
            chain.close([held], event)
            del claims[claim]
        else:
            claims[claim][2] = at
            if held is not None:
                chain.end(held, event)
    elif verb == "creating":
        phase, began_at = "CREATING", at
    elif verb == "deleting":
        phase = "DELETING"
    elif verb == "adopted":
        phase = "PRESENT"
        found = {name: claims.get(name, [event.subject, at, 0]) for name in event.data.get("claims") or ()}
        claims = found or {OUTSIDE_CLAIM: [event.subject, at, at]}
    elif verb == "absent":
        if phase == "DELETING" and began_at:
            # Never proved to be there, but it may have been.
            for name, told in claims.items():
                _begin_claim(chain, event, name, told, since=began_at, is_proved=False)
        chain.close(chain.open, event)
        claims = {name: told for name, told in claims.items() if not told[2]}
        phase, began_at = "ABSENT", None
    if verb in ("present", "adopted"):
        for name, told in claims.items():
            if chain.find(name) is None:
                _begin_claim(chain, event, name, told, since=began_at)
        phase, began_at = "PRESENT", None
    chain.facts |= {"claims": claims, "phase": phase, "began_at": began_at}


def _begin_claim(
    chain: Chain, event: AuditEvent, claim: str, told: list[Any], *, since: float | None = None, is_proved: bool = True
) -> None:
    who, claimed_at, ended_at = told
    _, _, account_id, permission_set_arn = split_key(chain.entity.partition("#")[2])
    begun = chain.begin(
        event,
        thing=Thing(ThingKind.ACCOUNT, account_id),
        who=who,
        reason=claim,
        from_at=from_epoch(max(since, claimed_at)) if since else event.at,
        is_proved=is_proved,
    )
    if not begun.right:
        chain.change(begun, right=permission_set_arn)
    if ended_at:
        chain.change(chain.open[-1], ended_at=from_epoch(ended_at), ended_by=event.actor)


def _person(chain: Chain, event: AuditEvent) -> None:
    """Memberships, by claim. ``waiting``: those of somebody who is disabled, as (group, claim, role, end)."""
    data, verb = event.data, event.action.partition(".")[2]
    group = Thing(ThingKind.GROUP, str(data.get("group_id", "")))
    claim, waiting = str(data.get("claim", "")), list(chain.facts.get("waiting", ()))
    if verb in ("granted", "role_changed"):
        replaced = [one for one in chain.open if one.thing == group and one.reason != claim and is_by_admin(one.reason)]
        chain.close([chain.find(claim, group), *(replaced if claim == PERMANENT else ())], event)
        _begin_membership(chain, event, group, claim, str(data["role"]), moment_in(event, "ends_at"))
    elif verb == "revoked":
        is_all = data.get("reason") == "the person was deleted"
        gone = [one for one in chain.open if one.thing == group and (is_all or one.reason == claim)]
        chain.close(gone, event)
        waiting = [one for one in waiting if one[0] != group.name or not (is_all or one[1] == claim)]
    elif verb == "deleted":
        chain.close(chain.open, event)
        waiting = []
    elif verb == "disabled":
        waiting = [[one.thing.name, one.reason, one.right, one.until and int(one.until.timestamp())] for one in chain.open]
        chain.close(chain.open, event)
    elif verb == "enabled":
        for name, reason, role, until in waiting:
            _begin_membership(chain, event, Thing(ThingKind.GROUP, name), reason, role, from_epoch(until) if until else None)
        waiting = []
    chain.facts["waiting"] = waiting


def _begin_membership(chain: Chain, event: AuditEvent, group: Thing, claim: str, role: str, until: datetime | None) -> None:
    chain.begin(event, thing=group, who=chain.entity.partition("#")[2], reason=claim, right=role, until=until)


def _group(chain: Chain, event: AuditEvent) -> None:
    """Where a group stands in the tree, and whether it is disabled there."""
    verb, group_id = event.action.partition(".")[2], chain.entity.partition("#")[2]
    place = chain.open[0] if chain.open else None
    if verb in ("created", "moved"):
        parent_id, is_off = str(event.data.get("parent_id", "")), place is not None and place.is_off
    elif verb in ("enabled", "disabled"):
        # Of one that another program made, its path says where it stands.
        guess = "" if group_id == ROOT else group_id.rpartition("/")[0] or ROOT
        parent_id, is_off = place.thing.name if place else guess, verb == "disabled"
    else:
        chain.close(chain.open, event)
        return
    chain.close(chain.open, event)
    chain.begin(event, thing=Thing(ThingKind.GROUP, parent_id), who=group_id, reason=TREE, is_off=is_off, until=None)


def _sandbox(chain: Chain, event: AuditEvent) -> None:
    """One hand-over after the other; each is over when the sandbox was cleaned, or lent anew."""
    data, verb = event.data, event.action.partition(".")[2]
    held = chain.open[0] if chain.open else None
    until = moment_in(event, "expires_at")
    if verb in ("taken", "adopted") or (verb == "revived" and held is None):
        chain.close(chain.open, event)
        key = str(data.get("key") or DIRECT)
        reason = key.removeprefix(PEOPLES_KEYS)
        who, thing = str(data["track"]).removeprefix(PEOPLES_TRACKS), Thing(ThingKind.SANDBOX, chain.entity.partition("#")[2])
        chain.begin(event, thing=thing, who=who, reason=reason, request_id=reason if reason != key else "", until=until)
    elif held is None:
        return
    elif verb in ("prolonged", "shortened"):
        chain.change(held, until=until)
    elif verb == "revived":
        chain.change(held, until=until, ended_at=None, ended_by="")
    elif verb in ("released", "expired", "quarantined") and held.ended_at is None:
        chain.end(held, event)
    elif verb in ("cleaned", "removed"):
        chain.close([held], event)


def _lease(chain: Chain, event: AuditEvent) -> None:
    """An account that is lent, while its holder's access is not put off."""
    data, verb, lease_id = event.data, event.action.partition(".")[2], chain.entity.partition("#")[2]
    held = chain.open[0] if chain.open else None
    if verb in ("started", "prolonged", "shortened"):
        chain.facts["until"] = data.get("ends_at")
    until = from_epoch(chain.facts["until"]) if chain.facts.get("until") else None
    if verb == "taken" or (verb in ("unfreeze_asked", "unfrozen") and held is None):
        thing = Thing(ThingKind.LEASE, str(data["account"]))
        chain.begin(event, thing=thing, who=event.subject, reason=lease_id, until=until, is_proved=verb == "unfrozen")
    elif held is None:
        return
    elif verb in ("started", "unfrozen"):
        chain.change(held, until=until, proved_at=held.proved_at or event.at, ended_at=None, ended_by="")
    elif verb in ("prolonged", "shortened"):
        chain.change(held, until=until)
    elif verb == "freeze_asked":
        chain.change(held, ended_at=event.at, ended_by=event.actor)
    elif verb == "unfreeze_asked":
        chain.change(held, ended_at=None, ended_by="")
    elif verb in ("frozen", "ended"):
        chain.close([held], event)


def _record(chain: Chain, event: AuditEvent) -> None:
    """An approval or a relationship, by each request that holds it. All of them are over at its end."""
    word, scope, names = chain.entity.split("#", 2)
    who, second, third = split_key(names)
    kind = ThingKind(word)
    name, right = (second, third) if kind is ThingKind.APPROVAL else (third, second)
    verb, claim = event.action.partition(".")[2], str(event.data.get("claim") or DIRECT)
    chain.close((one for one in chain.open if one.until is not None and one.until <= event.at), event)
    if verb in ("revoked", "expired", "deleted", "moved"):
        chain.close(chain.open, event)
        return
    until = moment_in(event, "expires_at")
    if verb == "released":
        chain.close([chain.find(claim)], event)
    elif chain.find(claim) is None:
        chain.begin(event, thing=Thing(kind, name, scope), who=who, reason=claim, right=right, until=until)
    for one in chain.open:
        if one.until != until:
            chain.change(one, until=until)


_Reader = Callable[[Chain, AuditEvent], None]
_RECORD = "granted extended replaced held released revoked expired deleted moved"
_NOBODY: tuple[frozenset[str], _Reader | None] = (frozenset(), None)


def _reader(verbs: str, read: _Reader) -> tuple[frozenset[str], _Reader]:
    return frozenset(verbs.split()), read


_READERS: Mapping[str, tuple[frozenset[str], _Reader]] = {
    "assignment": _reader("claimed released creating deleting present absent adopted", _assignment),
    "person": _reader("granted role_changed revoked deleted disabled enabled", _person),
    "group": _reader("created moved enabled disabled deleted", _group),
    "sandbox": _reader("taken adopted revived prolonged shortened released expired quarantined cleaned removed", _sandbox),
    "lease": _reader("taken started prolonged shortened freeze_asked unfreeze_asked frozen unfrozen ended", _lease),
    "approval": _reader(_RECORD, _record),
    "relationship": _reader(_RECORD, _record),
}
