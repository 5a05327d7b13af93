"""The only user of the Comparisons item class. Bookkeeping: no events; losing the table costs one comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from pynamodb.expressions.condition import Condition

from accessportal.assignments.models import CURRENT, ComparisonItem
from accessportal.assignments.states import AssignmentKey, Comparison, Comparisons, Drift, Finding, Found, Unread
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.clock import precise, to_epoch
from accessportal.kernel.ids import new_event_id
from accessportal.kernel.moments import furthest
from accessportal.store.listing import Listing
from accessportal.store.reading import read_item
from accessportal.store.records import Records
from accessportal.store.transactions import Change, ConditionFailed, Insert, Overtaken, Step, Upsert, transact

_KEPT_FOR = timedelta(days=30)
# So many fit into an item (400 KB, a DynamoDB limit) with room to spare.
_FINDINGS_IN_AN_ITEM = 500


_comparisons = Records(ComparisonItem, Comparison, key=lambda one: (one.comparison_id, 0), unchanged=("step",))


def comparisons() -> Comparisons:
    """The comparison with IAM Identity Center that is under way, and the last one that was finished; strongly read."""
    open_id, ended_id = _pointer()
    return Comparisons(open=_get(open_id), last=_get(ended_id))


def begin(*, now: datetime, until: datetime) -> Comparison:
    """A new comparison, ours until ``until``, where none is open.

    :raises Overtaken: when somebody else began one.
    """
    begun = Comparison(new_event_id(now), begun_at=now, busy_until=until, pairs=0, pairs_read=0, listed=0, parts=0, step=1)
    open_id, _ = _pointer()
    free: Condition = ComparisonItem.open_id.does_not_exist()
    if open_id is not None and _get(open_id) is None:
        # Left for so long that its items are gone.
        free = ComparisonItem.open_id == open_id
    pointer = Upsert(ComparisonItem, CURRENT, [ComparisonItem.open_id.set(begun.comparison_id)], free, range_key=0)
    _commit([pointer, _comparisons.insertion(begun, purge_at=to_epoch(now + _KEPT_FOR))])
    return _comparisons.kept(begun)


def take(comparison: Comparison, *, now: datetime, until: datetime) -> Comparison:
    """The comparison, ours alone until ``until``.

    :raises Overtaken: while another worker has it.
    """
    busy = ComparisonItem.busy_until
    free = busy.does_not_exist() | (busy < precise(now)) | (busy > precise(furthest(now, longest=until - now)))
    return _change(comparison, comparison, until=until, free=free)


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


def found_by(comparison: Comparison) -> Found:
    """Everything that a comparison found."""
    kept = Listing("assignments.found", ComparisonItem, lambda item: _found(item.found), consistent=True)
    parts = list(kept.every(comparison.comparison_id, where=ComparisonItem.part > 0))
    findings = tuple(finding for part in parts for finding in part.findings)
    return Found(comparison.listed, findings, tuple(one for part in parts for one in part.unread))


def _pointer() -> tuple[str | None, str | None]:
    """The ids of the open comparison and of the last one that was finished."""
    return read_item(ComparisonItem, lambda item: (item.open_id, item.ended_id), CURRENT, 0) or (None, None)


def _get(comparison_id: str | None) -> Comparison | None:
    return _comparisons.get(comparison_id, 0) if comparison_id else None


def _change(
    before: Comparison,
    after: Comparison,
    *,
    until: datetime | None,
    free: Condition | None = None,
    more: Sequence[Step] = (),
) -> Comparison:
    after = replace(after, step=before.step + 1, busy_until=until)
    change = _comparisons.change(before, after)
    if free is not None:
        change = replace(change, condition=change.condition & free)
    _commit([change, *more])
    return _comparisons.kept(after)


def _commit(steps: Sequence[Step]) -> None:
    try:
        transact(steps)
    except ConditionFailed as error:
        raise Overtaken from error


def _text(found: Found) -> str:
    findings = [{"drift": one.drift, **asdict(one.key), "claims": one.claims} for one in found.findings]
    return json.dumps({"findings": findings, "unread": [asdict(one) for one in found.unread]}, separators=(",", ":"))


def _found(text: str | None) -> Found:
    told = json.loads(text or "")
    return Found(findings=tuple(_finding(**one) for one in told["findings"]), unread=tuple(Unread(**one) for one in told["unread"]))


def _finding(*, drift: str, claims: list[str], principal_type: str, principal_id: str, account_id: str, permission_set_arn: str) -> Finding:
    key = AssignmentKey(PrincipalType(principal_type), principal_id, account_id, permission_set_arn)
    return Finding(Drift(drift), key, tuple(claims))
