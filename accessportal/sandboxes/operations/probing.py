"""The look at the provider before a sandbox goes out to a person: one that it does not show as ready is set aside, and the next is
taken."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from datetime import datetime
from itertools import islice

from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE, most_at_once
from accessportal.kernel.pages import every
from accessportal.sandboxes import policy
from accessportal.sandboxes.operations.shared import leaving_free_list, told, unheld
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.sandboxes.store import pages, pool, rows
from accessportal.upstream.errors import UpstreamError
from accessportal.upstream.provider import Provider


def probe(provider: Provider | None, sandbox: Sandbox, *, actor: Actor, now: datetime) -> None:
    """Look whether the provider shows it as ready; whoever gives no answer hinders nobody. :raises Unlisted: when it does not."""
    if provider is None:
        return
    try:
        found = provider.get_sandbox(sandbox.external_id)
    except UpstreamError:
        return
    if found is not None and found.is_ready:
        return
    with suppress(rows.Overtaken):
        _set_aside(sandbox.sandbox_id, is_there=found is not None, actor=actor, now=now)
    raise rows.Unlisted


def _set_aside(sandbox_id: str, *, is_there: bool, actor: Actor, now: datetime) -> None:
    """As a sync does: not ready, it is stale until it is listed as ready; unknown there, it is noted as missing, and the next look decides,
    because 404 is also what a wrong address answers. With many stale already a sync decides, which has a brake."""
    row = rows.look(sandbox_id)
    if not isinstance(row, Sandbox) or row.status is not Status.AVAILABLE:
        return
    if not is_there:
        if policy.is_missed_anew(row, now):
            rows.note(row, dataclasses.replace(row, missing_since=now))
    elif not _are_many_stale():
        after = unheld(row, Status.STALE)
        draft = told("sandbox.stale", after, status=after.status.value)
        rows.change(row, after, draft=draft, actor=actor, now=now, free_step=leaving_free_list(row))


def _are_many_stale() -> bool:
    stats = pool.last_counts()
    most = most_at_once(0 if stats is None else stats.total, MOST_SHARE)
    stale = every(lambda cursor: pages.by_status(Status.STALE, cursor=cursor, limit=most + 1))
    return len(list(islice(stale, most))) >= most
