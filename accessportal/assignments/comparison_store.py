"""The only user of the Comparisons item class. Bookkeeping: no events; losing the table costs one comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.assignments.models import CURRENT, ComparisonItem
from accessportal.assignments.states import AssignmentKey, Comparison, Comparisons, Drift, Finding, Found, Unread
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.ids import new_event_id
from accessportal.kernel.moments import furthest
from accessportal.store.listing import Listing
from accessportal.store.reading import read_item
from accessportal.store.transactions import Change, ConditionFailed, Insert, Step, Upsert, transact

_KEPT_FOR = timedelta(days=30)
# So many fit into an item (400 KB, a DynamoDB limit) with room to spare.
_FINDINGS_IN_AN_ITEM = 500


class Overtaken(Exception):
    """Another worker goes on with the comparison."""


def current() -> Comparisons:
    """Strongly read."""
    open_id, ended_id = _pointer()
    return Comparisons(open=_get(open_id), last=_get(ended_id))


def begin(*, now: datetime, until: datetime) -> Comparison:
    """A new comparison, ours until ``until``, where none is open.

    :raises Overtaken: when somebody else began one.
    """
    head = ComparisonItem(
        new_event_id(now),
        0,
        begun_at=_epoch(now),
        busy_until=_epoch(until),
        step=1,
        is_counted=False,
        permission_set_arn="",
        account_id="",
        pairs=0,
        pairs_read=0,
        listed=0,
        parts=0,
        purge_at=to_epoch(now + _KEPT_FOR),
    )
    open_id, _ = _pointer()
    free: Condition = ComparisonItem.open_id.does_not_exist()
    if open_id is not None and _get(open_id) is None:
        # Left for so long that its items are gone.
        free = ComparisonItem.open_id == open_id
    pointer = Upsert(ComparisonItem, CURRENT, [ComparisonItem.open_id.set(head.comparison_id)], free, range_key=0)
    _commit([pointer, Insert(head)])
    return _record(head)


def take(comparison: Comparison, *, now: datetime, until: datetime) -> Comparison:
    """The comparison, ours alone until ``until``.

    :raises Overtaken: while another worker has it.
    """
    busy = ComparisonItem.busy_until
    free = busy.does_not_exist() | (busy < _epoch(now)) | (busy > _epoch(furthest(now, longest=until - now)))
    return _change(comparison, comparison, until=until, condition=free)


def write(before: Comparison, after: Comparison, found: Found, *, until: datetime) -> Comparison:
    """One step: ``after`` is where it goes on, ``found`` what the step found.

    :raises Overtaken: when another worker wrote a step since; then nothing is written.
    """
    purge_at = to_epoch(before.begun_at + _KEPT_FOR)
    most = max(len(found.findings), len(found.unread))
    slices = [slice(start, start + _FINDINGS_IN_AN_ITEM) for start in range(0, most, _FINDINGS_IN_AN_ITEM)]
    texts = [_text(Found(findings=found.findings[some], unread=found.unread[some])) for some in slices]
    numbered = enumerate(texts, start=before.parts + 1)
    parts = [Insert(ComparisonItem(before.comparison_id, number, found=text, purge_at=purge_at)) for number, text in numbered]
    after = replace(after, parts=before.parts + len(parts), listed=before.listed + found.listed)
    return _change(before, after, until=until, more=parts)


def finish(comparison: Comparison, *, now: datetime) -> Comparison:
    """It is the last one that was finished, and another one can be begun.

    :raises Overtaken: when somebody else did that.
    """
    is_ours = ComparisonItem.open_id == comparison.comparison_id
    actions = [ComparisonItem.open_id.remove(), ComparisonItem.ended_id.set(comparison.comparison_id)]
    pointer = Change(ComparisonItem, CURRENT, actions, is_ours, range_key=0)
    return _change(comparison, replace(comparison, finished_at=now), until=None, more=[pointer])


def let_go(comparison: Comparison) -> None:
    """Others may go on with it at once; nothing happens when they do already."""
    try:
        _change(comparison, comparison, until=None)
    except Overtaken:
        return


def read_found(comparison: Comparison) -> Found:
    """All that it found."""
    kept = Listing("assignments.found", ComparisonItem, lambda item: _found(item.found), consistent=True)
    parts = list(kept.every(comparison.comparison_id, where=ComparisonItem.part > 0))
    findings = tuple(finding for part in parts for finding in part.findings)
    return Found(comparison.listed, findings, tuple(one for part in parts for one in part.unread))


def _pointer() -> tuple[str | None, str | None]:
    """The ids of the open comparison and of the last one that was finished."""
    return read_item(ComparisonItem, lambda item: (item.open_id, item.ended_id), CURRENT, 0) or (None, None)


def _get(comparison_id: str | None) -> Comparison | None:
    return read_item(ComparisonItem, _record, comparison_id, 0) if comparison_id else None


def _change(
    before: Comparison,
    after: Comparison,
    *,
    until: datetime | None,
    condition: Condition | None = None,
    more: Sequence[Step] = (),
) -> Comparison:
    after = replace(after, step=before.step + 1)
    item = ComparisonItem
    actions: list[Action] = [
        item.step.set(after.step),
        item.is_counted.set(after.is_counted),
        item.permission_set_arn.set(after.permission_set_arn),
        item.account_id.set(after.account_id),
        item.pairs.set(after.pairs),
        item.pairs_read.set(after.pairs_read),
        item.listed.set(after.listed),
        item.parts.set(after.parts),
        item.busy_until.set(_epoch(until)) if until is not None else item.busy_until.remove(),
    ]
    if after.finished_at is not None:
        actions.append(item.finished_at.set(_epoch(after.finished_at)))
    is_as_read = item.step == before.step
    wanted = is_as_read if condition is None else is_as_read & condition
    _commit([Change(item, before.comparison_id, actions, wanted, range_key=0), *more])
    return after


def _commit(steps: Sequence[Step]) -> None:
    try:
        transact(steps)
    except ConditionFailed as error:
        raise Overtaken from error


def _record(item: ComparisonItem) -> Comparison:
    return Comparison(
        comparison_id=item.comparison_id,
        begun_at=from_epoch(_number(item.begun_at)),
        finished_at=None if item.finished_at is None else from_epoch(item.finished_at),
        is_counted=bool(item.is_counted),
        permission_set_arn=item.permission_set_arn or "",
        account_id=item.account_id or "",
        pairs=int(_number(item.pairs)),
        pairs_read=int(_number(item.pairs_read)),
        listed=int(_number(item.listed)),
        parts=int(_number(item.parts)),
        step=int(_number(item.step)),
    )


def _number(value: float | None) -> float:
    """:raises ValueError: when it is missing."""
    if value is None:
        raise ValueError("a number is missing")
    return value


def _text(found: Found) -> str:
    findings = [{"drift": one.drift, **asdict(one.key), "claims": one.claims} for one in found.findings]
    return json.dumps({"findings": findings, "unread": [asdict(one) for one in found.unread]}, separators=(",", ":"))


def _found(text: str | None) -> Found:
    told = json.loads(text or "")
    return Found(findings=tuple(_finding(**one) for one in told["findings"]), unread=tuple(Unread(**one) for one in told["unread"]))


def _finding(*, drift: str, claims: list[str], principal_type: str, principal_id: str, account_id: str, permission_set_arn: str) -> Finding:
    key = AssignmentKey(PrincipalType(principal_type), principal_id, account_id, permission_set_arn)
    return Finding(Drift(drift), key, tuple(claims))


def _epoch(moment: datetime) -> float:
    return round(moment.timestamp(), 3)
