"""One walk through every table that takes a person out, the events of the audit log with their keys and seals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from accessportal.audit import config, policy, store
from accessportal.audit.models import AuditItem, day_shard_for, outbox_for
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pseudonyms import Pseudonyms
from accessportal.store.base import registered_models
from accessportal.store.reading import BROKEN, RawItem, key_in
from accessportal.store.replacing import Replaced, replace_in_table, replaced_in_raw


@dataclass(frozen=True, slots=True)
class Walked:
    """By table, how many items named the person, and how many of those were written. ``typed``: where the person's name stands in what
    somebody typed, which stays."""

    tables: Mapping[str, Replaced]
    typed: Sequence[str]

    @property
    def read(self) -> int:
        return sum(one.read for one in self.tables.values())

    @property
    def found(self) -> int:
        return sum(one.found for one in self.tables.values())


def walk(pseudonym: str, *, names: frozenset[str], is_dry: bool) -> Walked:
    """See :func:`accessportal.audit.operations.erasing.take_out`."""
    pseudonyms = config.current().pseudonyms
    assert pseudonyms is not None
    replaced = partial(pseudonyms.in_text, only=pseudonym)
    tables: dict[str, Replaced] = {}
    typed: list[str] = []

    def amended(table: str, raw: RawItem) -> dict[str, Any]:
        after = {name: replaced_in_raw(value, replaced) for name, value in raw.items()}
        if table == AuditItem.base_table_name:
            after = _event_without(raw, after, pseudonym, pseudonyms)
        for place, whose in model_of[table].about_people.items():
            _forget(after, place, whose, pseudonym)
        if any(name in str(after) for name in names):
            typed.append(f"{table}: {' '.join(map(str, key_in(model_of[table], after)))}")
        return after

    model_of = {model.base_table_name: model for model in registered_models()}
    for table, model in model_of.items():
        is_log = model is AuditItem
        tables[table] = replace_in_table(model, partial(amended, table), is_dry=is_dry, may_overwrite=not is_log)
    return Walked(tables, typed)


def _forget(after: dict[str, Any], place: str, whose: str, pseudonym: str) -> None:
    """Replace what is told of the person at ``place``."""
    *outer, name = place.split(".") if whose else [place, pseudonym]
    held = after
    for step in outer:
        held = held.get(step, {}).get("M", {})
    if name in held and (not whose or after.get(whose) == {"S": pseudonym}):
        held[name] = {"S": pseudonym}


def _event_without(raw: RawItem, after: dict[str, Any], pseudonym: str, pseudonyms: Pseudonyms) -> dict[str, Any]:
    try:
        return _moved_and_sealed(raw, after, pseudonym, pseudonyms)
    except BROKEN as error:
        which = f"{raw['entity']['S']}, event {raw['sequence']['N']}"
        words = f"{which} names the person and can't be read ({error}): look at verify_audit first."
        raise Conflict(words, code="event_not_whole") from error


def _moved_and_sealed(raw: RawItem, after: dict[str, Any], pseudonym: str, pseudonyms: Pseudonyms) -> dict[str, Any]:
    entity = after["entity"]["S"]
    if entity.endswith(f"#{pseudonym}"):
        after["data"] = {"M": _without_names(after["action"]["S"], after["data"]["M"], pseudonyms.of_name)}
    if after == raw:
        return after
    event, keys = store.event_of(raw), config.current()
    if not (event.pseudonym_id or event.seal):
        if flaw := policy.flaw_of(event, keys):
            words = f"{event.entity}, event {event.sequence} {flaw}: look at verify_audit first."
            raise Conflict(words, code="event_not_whole")
        after["seal"] = {"S": policy.seal_of(event, keys)}
    if entity != event.entity:
        after["day#shard"] = {"S": day_shard_for(entity, event.at)}
        after |= {"outbox": {"S": outbox_for(entity)}} if "outbox" in raw else {}
    return after


def _without_names(action: str, data: Mapping[str, Any], replaced: Callable[[str], str]) -> dict[str, Any]:
    texts = {field: value["S"] for field, value in data.items() if "S" in value}
    return {**data, **{field: {"S": text} for field, text in policy.without_names(action, texts, replaced).items()}}
