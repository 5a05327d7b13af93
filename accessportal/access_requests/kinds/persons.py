"""What kinds share about those whom access is for: whether they are still the ones who were meant."""

from __future__ import annotations

from datetime import datetime

from accessportal.access_requests.states import AccessRequest
from accessportal.directory import queries as directory
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.proofs import Waiting


def made_anew(request: AccessRequest, *, now: datetime) -> Waiting | None:
    """What was granted to somebody who was deleted since is not for whoever has the address now."""
    person = directory.find_person(email=request.subject_id)
    if person is None or to_epoch(person.created_at) <= to_epoch(request.requested_at):
        return None
    text = f"{person.email} was deleted and made anew after this was asked for. They can ask themselves."
    return Waiting("person_made_anew", text, now, is_error=True, is_final=True)


def group_made_anew(group_id: str, request: AccessRequest, *, now: datetime) -> Waiting | None:
    """Another group took the path since: nobody approved that one."""
    group = directory.find_group(group_id=group_id)
    if group is None or group.created_at is None or to_epoch(group.created_at) <= to_epoch(request.requested_at):
        return None
    text = f"{group.group_id} was deleted and made anew after this was asked for. Ask again."
    return Waiting("group_made_anew", text, now, is_error=True, is_final=True)
