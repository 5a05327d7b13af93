"""From the text of a rules file to rules, or to every mistake in it. The grammar is told in ``docs/rules.md``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from accessportal.directory.policy.words import is_group_id
from accessportal.kernel.actors import fold_email
from accessportal.kernel.durations import format_duration
from accessportal.rules.states import (
    EVERYBODY,
    SMALLEST_DURATION_SECONDS,
    Approval,
    Effect,
    EndsWith,
    InvalidRules,
    People,
    Rule,
    RuleProblem,
    Ticket,
)
from accessportal.rules.terms import Terms, kinds, terms_of
from accessportal.rules.tickets import pattern_fault
from accessportal.rules.yaml_nodes import Notes, Place, parse, shown

MOST_RULES = 1000
LARGEST_RULE = 30_000
LONGEST_DURATION_SECONDS = 365 * 86_400
LONGEST_PATTERN = 200
_USUAL_DURATION_SECONDS = 3_600
_LARGEST_QUORUM = 20
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_USER = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9.-]{1,189}")
_SHARED_KEYS = ("name", "kind", "effect", "subjects", "targets")
_HISTORY = ("version", "position", "hash", "applied_at", "applied_by", "is_removed")


def read_rules(text: str | bytes) -> tuple[Rule, ...]:
    """Read the rules of a file, in its order, each with version 0 and the hash of its content; InvalidRules has every mistake with its
    line."""
    root = parse(text)
    if root is None:
        raise InvalidRules(
            (RuleProblem(1, "", "", "The file is empty.", "Write “rules:” and the rules below it; “rules: []” removes all."),)
        )
    notes = Notes()
    rules = _read_file(Place(notes, root, ""))
    notes.finish()
    return rules


def content_of(rule: Rule) -> dict[str, Any]:
    """What a rule says, without its version, place and history: the part that its hash covers."""
    content = dataclasses.asdict(rule)
    for key in (*_HISTORY, "terms"):
        del content[key]
    # What a rule does not say is no part of it: rules that are in force were stored before there were these keys.
    for key in ("ends_with", "max_total_seconds"):
        if not content[key]:
            del content[key]
    for who in (content["subjects"], content["approval"]["approvers"]):
        if not who["groups_only"]:
            del who["groups_only"]
    return {"kind": rule.kind} | rule.terms.stored() | content


def hash_of(rule: Rule) -> str:
    """SHA-256 (hex) over the canonical JSON of the rule's content; the order inside its lists says nothing."""
    return hashlib.sha256(_canonical(rule).encode()).hexdigest()


def check_group(value: str) -> str:
    """What is wrong with the path of a group; empty: nothing."""
    if value != EVERYBODY and is_group_id(value):
        return ""
    return "is not a group path: write it like /engineering/payments, in lower case, without a slash at the end."


def check_group_or_root(value: str) -> str:
    return "" if value == EVERYBODY else check_group(value)


def _canonical(rule: Rule) -> str:
    return json.dumps(_sorted(content_of(rule)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(part) for key, part in value.items()}
    return sorted(value) if isinstance(value, list | tuple) else value


def _read_file(root: Place) -> tuple[Rule, ...]:
    nodes = root.section(required=("rules",))["rules"].items()
    if len(nodes) > MOST_RULES:
        nodes[MOST_RULES].report(f"A file has at most {MOST_RULES} rules; this one has {len(nodes)}.", "Merge some.")
        return ()
    rules: list[Rule] = []
    first_lines: dict[str, int] = {}
    for position, node in enumerate(nodes):
        root.notes.rule_name = ""
        rule = _read_rule(node, position)
        if rule is None:
            continue
        if rule.name in first_lines:
            message = f"A rule with the name {rule.name} stands already at line {first_lines[rule.name]}."
            root.notes.add(node.node, f"{node.path}.name", message, "Every rule needs its own name.")
        first_lines.setdefault(rule.name, node.node.start_mark.line + 1)
        rules.append(rule)
    return tuple(rules)


def _read_rule(place: Place, position: int) -> Rule | None:
    """The rule, or ``None`` when it has no name to go by; other mistakes are noted and stand-ins used."""
    is_deny = _peek(place.node, "effect") == Effect.DENY
    kind = _peek(place.node, "kind")
    grammar = terms_of(kind if kind in kinds() else kinds()[0])
    section = _section_of(place, grammar, is_deny=is_deny)
    name = place.notes.rule_name = _read_name(section["name"])
    _note_empty_offer(section, grammar.offer_key)
    section["effect"].choice(tuple(Effect))
    section["kind"].choice(kinds())
    durations = _read_durations(section["duration"])
    rule = Rule(
        name=name,
        version=0,
        position=position,
        hash="",
        effect=Effect.DENY if is_deny else Effect.ALLOW,
        subjects=_read_subjects(section["subjects"]),
        terms=grammar.read(section, is_deny=is_deny),
        default_duration_seconds=durations.usual,
        min_duration_seconds=durations.smallest,
        max_duration_seconds=durations.longest,
        max_total_seconds=durations.total,
        approval=_read_approval(section["approval"], grammar.stand_ins),
        ticket=_read_ticket(section["ticket"]),
        description=section["description"].text(longest=500),
        ends_with=None if is_deny else _read_ends_with(section["ends_with"]),
    )
    size = len(_canonical(rule).encode())
    if size > LARGEST_RULE:
        message = f"A rule has at most {LARGEST_RULE} bytes; this one has {size}."
        place.report(message, "Use an OU or a tag instead of many accounts, or split the rule.")
    return dataclasses.replace(rule, hash=hash_of(rule)) if name else None


def _section_of(place: Place, grammar: type[Terms], *, is_deny: bool) -> Place:
    offered = (grammar.offer_key,) if grammar.offer_key else ()
    if is_deny:
        section = place.section(required=_SHARED_KEYS, optional=(*offered, "description"))
    else:
        required = (*_SHARED_KEYS, *offered, "duration", "approval")
        section = place.section(required=required, optional=("ticket", "description", "ends_with", *grammar.limit_keys))
    return section


def _note_empty_offer(section: Place, key: str) -> None:
    if key and section[key].is_empty_list:
        names = key.replace("_", " ")
        section[key].report("The list is empty.", f"Name {names}; a deny rule without this key covers all.")


def _peek(node: yaml.Node, key: str) -> str:
    """A value that decides which keys are allowed is looked for first; whether it is well written is judged later."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == key and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    return ""


def _read_name(place: Place) -> str:
    name = place.text()
    if name and not _NAME.fullmatch(name):
        message = f"“{shown(name)}” is not a rule name: it has 1 to 64 lower-case letters, digits and hyphens."
        place.report(message, "Write it like prod-readonly.")
        return ""
    return name


def _read_ends_with(place: Place) -> EndsWith | None:
    if not place.is_given:
        return EndsWith.MEMBERSHIP
    chosen = place.choice(tuple(EndsWith))
    return EndsWith(chosen) if chosen else None


def _read_subjects(place: Place) -> People:
    who = _read_people(place, check_group_or_root)
    if place.is_given and not place.has_items:
        place.report("A rule without subjects is about nobody.", "Name groups or users; the group / means everybody.")
    return who


def _read_people(place: Place, check: Callable[[str], str]) -> People:
    section = place.section(optional=("groups", "groups_only", "users"))
    groups, only = section["groups"].texts(check), section["groups_only"].texts(_check_group_only)
    users = section["users"].texts(_check_user)
    return People(groups, tuple(dict.fromkeys(fold_email(user) for user in users)), only)


def _check_group_only(value: str) -> str:
    return check_group(value) if value != EVERYBODY else "means everybody only in groups: name a group here."


def _check_user(value: str) -> str:
    return "" if _USER.fullmatch(value) else "is not an e-mail address: write it like alice@example.com."


class _Durations(NamedTuple):
    """In seconds. ``total``: the longest with extensions; 0: as the longest."""

    smallest: int
    usual: int
    longest: int
    total: int


def _read_durations(place: Place) -> _Durations:
    section = place.section(required=("max",), optional=("min", "default", "max_total"))
    read = {key: section[key].duration() for key in ("max", "min", "default", "max_total") if section[key].is_given}
    longest = read.get("max")
    if longest is None or None in read.values():
        return _Durations(0, 0, 0, 0)
    smallest = read.get("min") or SMALLEST_DURATION_SECONDS
    usual = read.get("default") or max(smallest, min(_USUAL_DURATION_SECONDS, longest))
    total = read.get("max_total") or 0
    for key in ("max", "max_total"):
        if (read.get(key) or 0) > LONGEST_DURATION_SECONDS:
            what = f"The longest possible is {format_duration(LONGEST_DURATION_SECONDS)}."
            section[key].report(what, "Access that never ends is no business of the portal.")
    if smallest < SMALLEST_DURATION_SECONDS:
        section["min"].report(f"The shortest possible is {format_duration(SMALLEST_DURATION_SECONDS)}.", "Write 1m or more.")
    if smallest > longest:
        what = f"The shortest, {format_duration(smallest)}, is longer than the longest, {format_duration(longest)}."
        section["min"].report(what, "Swap them, or raise max.")
    elif not smallest <= usual <= longest:
        what = f"The default, {format_duration(usual)}, is not between {format_duration(smallest)} and {format_duration(longest)}."
        section["default"].report(what, "Choose one in between.")
    if 0 < total < longest:
        what = f"The longest with extensions, {format_duration(total)}, is shorter than the longest, {format_duration(longest)}."
        section["max_total"].report(what, "Raise it, or leave it out: then the longest counts.")
    return _Durations(smallest, usual, longest, total)


def _read_approval(place: Place, stand_ins: str) -> Approval:
    section = place.section(required=("required",), optional=("quorum", "approvers"))
    required, quorum = section["required"].flag(), section["quorum"]
    needed = quorum.whole_number(smallest=1, largest=_LARGEST_QUORUM) if quorum.is_given else 1
    approvers = _read_people(section["approvers"], check_group)
    if not place.is_given or required is False:
        if quorum.is_given:
            quorum.report("A quorum has no meaning while approval is not required.", "Remove it, or set required: true.")
        return Approval(required=False, quorum=0, approvers=approvers)
    may_be_left_out = bool(stand_ins) and not section["approvers"].is_given
    if required and not may_be_left_out and not section["approvers"].has_items:
        remedy = f", or leave it out: then {stand_ins} approve." if stand_ins else "."
        section["approvers"].report("Approval is required but nobody may approve.", f"Name groups or users in approvers{remedy}")
    elif needed and not (approvers.groups or approvers.groups_only) and 0 < len(approvers.users) < needed:
        what = f"{needed} approvals are needed but only {len(approvers.users)} people may approve."
        quorum.report(what, "Lower it, or name more approvers.")
    return Approval(bool(required), needed or 0, approvers)


def _read_ticket(place: Place) -> Ticket:
    section = place.section(required=("required",), optional=("pattern",))
    pattern = section["pattern"].text(longest=LONGEST_PATTERN)
    fault = pattern_fault(pattern)
    if fault:
        section["pattern"].report(f"“{shown(pattern)}” is not a pattern: {fault}.", "Write a regular expression like CHG-[0-9]+.")
        pattern = ""
    return Ticket(bool(section["required"].flag()), pattern)
