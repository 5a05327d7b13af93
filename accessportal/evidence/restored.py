"""What a restore of the tables has taken from chains that were exported: a signed note of it, so that whoever has the files alone can tell
it from a forgery (docs/decisions/0081-evidence-outside.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from accessportal.audit import queries as audit
from accessportal.evidence.store import EvidenceFiles
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Conflict, NoAnswer, Unavailable
from accessportal.kernel.moments import SKEW
from accessportal.store.restores import Restore

Head = tuple[int, str]
Lost = list[tuple[int, str, datetime]]
"""Of the events of a chain that are gone, in order: sequence, hash of the one before, time."""


def notes_of(day: date, before: Sequence[date], restores: Iterable[Restore], files: EvidenceFiles) -> list[dict[str, Any]]:
    """One for each restore that was told on ``day`` and whose own chain is whole: who can't write its events has no note.
    None where a file or a digest of the time that is lost can't be read, which is a break itself.

    :raises NoAnswer: when the store of evidence, or the audit log, does not answer.
    """
    told = [one for one in restores if from_epoch(one.epoch).date() == day and _is_told(one)]
    try:
        return [_note(one, before, files) for one in reversed(told)]
    except NoAnswer:
        raise
    except (Unavailable, Conflict, ValueError, LookupError, TypeError, AttributeError):
        return []


def _is_told(restore: Restore) -> bool:
    events = audit.chain_of(restore.entity)
    if audit.check_chain(restore.entity, events, version=restore.version, audit_head=restore.audit_head):
        return False
    began, said = events[0], {"restored_to": to_epoch(restore.restored_to), "epoch": restore.epoch}
    return (began.action, began.actor, began.data) == ("restore.begun", restore.begun_by, said)


def _note(restore: Restore, before: Sequence[date], files: EvidenceFiles) -> dict[str, Any]:
    since, until = restore.restored_to - SKEW, from_epoch(restore.epoch) + SKEW
    days = [one for one in before if one >= since.date()]
    heads = _heads(days, files)
    lost = _lost(days, _fallen(heads), files)
    chains = {
        name: {"from": list(heads[name]), "to": [events[0][0] - 1, events[0][1]]}
        for name, events in sorted(lost.items())
        if all(since <= at <= until for _, _, at in events)
    }
    return {
        "restore": restore.entity,
        "restored_to": restore.restored_to.isoformat(),
        "at": from_epoch(restore.epoch).isoformat(),
        "by": audit.nameless(restore.begun_by),
        "chains": chains,
    }


def _heads(days: Iterable[date], files: EvidenceFiles) -> dict[str, Head]:
    heads: dict[str, Head] = {}
    for day in days:
        for name, (sequence, text) in files.digest(day)[0]["heads"].items():
            heads[name] = max(heads.get(name, (0, "")), (int(sequence), str(text)))
    return heads


def _fallen(heads: Mapping[str, Head]) -> dict[str, dict[int, str]]:
    """The chains that don't have their last signed head any more, each with the hashes that it has."""
    by_name: dict[str, list[str]] = {}
    for name in heads:
        # Before there were pseudonyms digests told addresses.
        by_name.setdefault(audit.nameless(name), []).append(name)
    fallen: dict[str, dict[int, str]] = {name: {} for name in heads}
    for entity, events in audit.every_chain(segment=0, segments=1):
        for name in by_name.get(audit.nameless(entity), ()):
            if name in fallen:
                fallen[name] |= {event.sequence: event.hash for event in events}
                sequence, text = heads[name]
                if fallen[name].get(sequence) == text:
                    del fallen[name]
    return fallen


def _lost(days: Iterable[date], fallen: Mapping[str, Mapping[int, str]], files: EvidenceFiles) -> dict[str, Lost]:
    lost: dict[str, Lost] = {}
    for day in days:
        for told in _told_of(fallen, files.lines(day)):
            if fallen[told["entity"]].get(told["sequence"]) != told["hash"]:
                lost.setdefault(told["entity"], []).append((told["sequence"], told["prev_hash"], datetime.fromisoformat(told["at"])))
    return {name: sorted(events) for name, events in lost.items()}


def _told_of(names: Mapping[str, object], lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        told: dict[str, Any] = json.loads(line)
        if told["entity"] in names:
            yield told
