"""From the text of a rules file to rules, or to every mistake in it. The grammar is told in ``docs/rules.md``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from typing import Any, NamedTuple

import yaml

from accessportal.kernel.actors import fold_email
from accessportal.kernel.durations import format_duration
from accessportal.rules.matching import pattern_fault
from accessportal.rules.offers import OFFERS, check_group, has_items, read_offers
from accessportal.rules.states import (
    AWS_ACCOUNT,
    EVERYBODY,
    GROUP,
    KINDS,
    SANDBOX,
    SMALLEST_DURATION_SECONDS,
    Approval,
    Effect,
    EndsWith,
    InvalidRules,
    People,
    Rule,
    RuleProblem,
    Targets,
    Ticket,
)
from accessportal.rules.yaml_nodes import Reader, parse, shown

MOST_RULES = 1000
LARGEST_RULE = 30_000
LONGEST_DURATION_SECONDS = 365 * 86_400
LONGEST_PATTERN = 200
_USUAL_DURATION_SECONDS = 3_600
_LARGEST_QUORUM = 20
_MOST_PER_PERSON = 100
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_USER = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9.-]{1,189}")
_SHARED_KEYS = ("name", "kind", "effect", "subjects", "targets")
_STAND_INS = {GROUP: "the group's admins", SANDBOX: "the operators"}
_NOBODY = People()
_NO_APPROVAL = Approval(required=False, quorum=0, approvers=_NOBODY)
_NO_TICKET = Ticket(required=False, pattern="")


def read_rules(text: str | bytes) -> tuple[Rule, ...]:
    """The rules of a file, in its order, each with version 0 and the hash of its content.

    :raises InvalidRules: with every mistake found, each with its line.
    """
    root = parse(text)
    if root is None:
        raise InvalidRules(
            (RuleProblem(1, "", "", "The file is empty.", "Write “rules:” and the rules below it; “rules: []” removes all."),)
        )
    reader = Reader()
    rules = _read_file(reader, root)
    reader.finish()
    return rules


def content_of(rule: Rule) -> dict[str, Any]:
    """What a rule says, without its version, place and history: the part that its hash covers."""
    content = dataclasses.asdict(rule)
    for key in ("version", "position", "hash", "applied_at", "applied_by", "is_removed"):
        del content[key]
    # What a rule does not say is no part of it: rules that are in force were stored before there were these keys.
    for key in ("ends_with", "max_total_seconds"):
        if not content[key]:
            del content[key]
    # Only the keys of its own kind: a further kind must not change what is said of the rules that are in force.
    for kind, offers in OFFERS.items():
        if kind != rule.kind:
            for key in offers.own_keys:
                del content[key]
            for key in offers.target_keys:
                del content["targets"][key]
    # A key that came later leaves the hash of rules without it as it was.
    for who in (content["subjects"], content["approval"]["approvers"]):
        if not who["groups_only"]:
            del who["groups_only"]
    return content


def hash_of(rule: Rule) -> str:
    """SHA-256 (hex) over the canonical JSON of the rule's content; the order inside its lists says nothing."""
    return hashlib.sha256(_canonical(rule).encode()).hexdigest()


def _canonical(rule: Rule) -> str:
    return json.dumps(_sorted(content_of(rule)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(part) for key, part in value.items()}
    return sorted(value) if isinstance(value, tuple) else value


def _read_file(reader: Reader, root: yaml.Node) -> tuple[Rule, ...]:
    top = reader.mapping(root, "", required=("rules",))
    if not top or "rules" not in top:
        return ()
    nodes = reader.sequence(top["rules"], "rules") or []
    if len(nodes) > MOST_RULES:
        reader.report(
            nodes[MOST_RULES], f"rules[{MOST_RULES}]", f"A file has at most {MOST_RULES} rules; this one has {len(nodes)}.", "Merge some."
        )
        return ()
    rules: list[Rule] = []
    first_lines: dict[str, int] = {}
    for position, node in enumerate(nodes):
        reader.rule_name = ""
        rule = _read_rule(reader, node, f"rules[{position}]", position)
        if rule is None:
            continue
        if rule.name in first_lines:
            message = f"A rule with the name {rule.name} stands already at line {first_lines[rule.name]}."
            reader.report(node, f"rules[{position}].name", message, "Every rule needs its own name.")
        first_lines.setdefault(rule.name, node.start_mark.line + 1)
        rules.append(rule)
    return tuple(rules)


def _read_rule(reader: Reader, node: yaml.Node, path: str, position: int) -> Rule | None:
    """The rule, or ``None`` when it has no name to go by; other mistakes are noted and stand-ins used."""
    effect = Effect.DENY if _peek(node, "effect") == Effect.DENY else Effect.ALLOW
    kind = _peek(node, "kind") if _peek(node, "kind") in KINDS else AWS_ACCOUNT
    offers = OFFERS[kind]
    offered = (offers.key,) if offers.key else ()
    if effect is Effect.DENY:
        values = reader.mapping(node, path, required=_SHARED_KEYS, optional=(*offered, "description"))
    else:
        required = (*_SHARED_KEYS, *offered, "duration", "approval")
        values = reader.mapping(node, path, required=required, optional=("ticket", "description", "ends_with", *offers.limit_keys))
    if values is None:
        return None
    name = _read_name(reader, values, path)
    reader.rule_name = name or ""
    if "effect" in values:
        _read_choice(reader, values["effect"], f"{path}.effect", tuple(Effect))
    if "kind" in values:
        _read_choice(reader, values["kind"], f"{path}.kind", KINDS)
    durations = _read_durations(reader, values["duration"], f"{path}.duration") if "duration" in values else _NO_DURATIONS
    rule = Rule(
        name=name or "",
        version=0,
        position=position,
        hash="",
        kind=kind,
        effect=effect,
        subjects=_read_subjects(reader, values["subjects"], f"{path}.subjects") if "subjects" in values else _NOBODY,
        targets=offers.read_targets(reader, values["targets"], f"{path}.targets") if "targets" in values else Targets(),
        permission_sets=read_offers(reader, values, path, offers, effect) if kind == AWS_ACCOUNT else (),
        roles=read_offers(reader, values, path, offers, effect) if kind == GROUP else (),
        default_duration_seconds=durations.usual,
        min_duration_seconds=durations.smallest,
        max_duration_seconds=durations.longest,
        max_total_seconds=durations.total,
        approval=_read_approval(reader, values["approval"], f"{path}.approval", kind) if "approval" in values else _NO_APPROVAL,
        ticket=_read_ticket(reader, values["ticket"], f"{path}.ticket") if "ticket" in values else _NO_TICKET,
        description=_read_description(reader, values, path),
        most_per_person=_read_most_per_person(reader, values, path, kind, effect),
        extend=_read_extend(reader, values, path),
        ends_with=_read_ends_with(reader, values, path, effect),
    )
    size = len(_canonical(rule).encode())
    if size > LARGEST_RULE:
        message = f"A rule has at most {LARGEST_RULE} bytes; this one has {size}."
        reader.report(node, path, message, "Use an OU or a tag instead of many accounts, or split the rule.")
    return dataclasses.replace(rule, hash=hash_of(rule)) if name else None


def _peek(node: yaml.Node, key: str) -> str:
    """A value that decides which keys are allowed is looked for first; whether it is well written is judged later."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == key and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    return ""


def _read_name(reader: Reader, values: dict[str, yaml.Node], path: str) -> str | None:
    if "name" not in values:
        return None
    name = reader.text(values["name"], f"{path}.name")
    if name is not None and not _NAME.fullmatch(name):
        message = f"“{shown(name)}” is not a rule name: it has 1 to 64 lower-case letters, digits and hyphens."
        reader.report(values["name"], f"{path}.name", message, "Write it like prod-readonly.")
        return None
    return name


def _read_choice(reader: Reader, node: yaml.Node, path: str, choices: tuple[str, ...]) -> str:
    value = reader.text(node, path)
    if value is not None and value not in choices:
        reader.report(node, path, f"“{shown(value)}” is not possible here.", f"Write {' or '.join(choices)}.")
    return value if value in choices else ""


def _read_description(reader: Reader, values: dict[str, yaml.Node], path: str) -> str:
    return (reader.text(values["description"], f"{path}.description", longest=500) or "") if "description" in values else ""


def _read_most_per_person(reader: Reader, values: dict[str, yaml.Node], path: str, kind: str, effect: Effect) -> int:
    if kind != SANDBOX or effect is Effect.DENY:
        return 0
    if "most_per_person" not in values:
        return 1
    return reader.whole_number(values["most_per_person"], f"{path}.most_per_person", smallest=1, largest=_MOST_PER_PERSON) or 1


def _read_extend(reader: Reader, values: dict[str, yaml.Node], path: str) -> bool:
    return "extend" not in values or reader.flag(values["extend"], f"{path}.extend") is not False


def _read_ends_with(reader: Reader, values: dict[str, yaml.Node], path: str, effect: Effect) -> EndsWith | None:
    if effect is Effect.DENY:
        return None
    if "ends_with" not in values:
        return EndsWith.MEMBERSHIP
    chosen = _read_choice(reader, values["ends_with"], f"{path}.ends_with", tuple(EndsWith))
    return EndsWith(chosen) if chosen else None


def _read_subjects(reader: Reader, node: yaml.Node, path: str) -> People:
    who = _read_people(reader, node, path, _check_subject_group)
    if not has_items(node):
        reader.report(node, path, "A rule without subjects is about nobody.", "Name groups or users; the group / means everybody.")
    return who


def _read_people(reader: Reader, node: yaml.Node, path: str, check_group: Any) -> People:
    values = reader.mapping(node, path, optional=("groups", "groups_only", "users")) or {}
    groups = reader.texts(values["groups"], f"{path}.groups", check_group) if "groups" in values else ()
    only = reader.texts(values["groups_only"], f"{path}.groups_only", _check_group_only) if "groups_only" in values else ()
    users = reader.texts(values["users"], f"{path}.users", _check_user) if "users" in values else ()
    return People(groups, tuple(dict.fromkeys(fold_email(user) for user in users)), only)


def _check_group_only(value: str) -> str:
    return check_group(value) if value != EVERYBODY else "means everybody only in groups: name a group here."


def _check_subject_group(value: str) -> str:
    return "" if value == EVERYBODY else check_group(value)


def _check_user(value: str) -> str:
    return "" if _USER.fullmatch(value) else "is not an e-mail address: write it like alice@example.com."


class _Durations(NamedTuple):
    """In seconds. ``total``: the longest with extensions; 0: as the longest."""

    smallest: int
    usual: int
    longest: int
    total: int


_NO_DURATIONS = _Durations(0, 0, 0, 0)


def _read_durations(reader: Reader, node: yaml.Node, path: str) -> _Durations:
    values = reader.mapping(node, path, required=("max",), optional=("min", "default", "max_total")) or {}
    read = {key: reader.duration(value, f"{path}.{key}") for key, value in values.items()}
    longest = read.get("max")
    if longest is None or None in read.values():
        return _NO_DURATIONS
    smallest = read.get("min") or SMALLEST_DURATION_SECONDS
    usual = read.get("default") or max(smallest, min(_USUAL_DURATION_SECONDS, longest))
    total = read.get("max_total") or 0
    for key in ("max", "max_total"):
        if (read.get(key) or 0) > LONGEST_DURATION_SECONDS:
            what = f"The longest possible is {format_duration(LONGEST_DURATION_SECONDS)}."
            reader.report(values[key], f"{path}.{key}", what, "Access that never ends is no business of the portal.")
    if smallest < SMALLEST_DURATION_SECONDS:
        reader.report(
            values["min"], f"{path}.min", f"The shortest possible is {format_duration(SMALLEST_DURATION_SECONDS)}.", "Write 1m or more."
        )
    if smallest > longest:
        what = f"The shortest, {format_duration(smallest)}, is longer than the longest, {format_duration(longest)}."
        reader.report(values.get("min", values["max"]), f"{path}.min", what, "Swap them, or raise max.")
    elif not smallest <= usual <= longest:
        what = f"The default, {format_duration(usual)}, is not between {format_duration(smallest)} and {format_duration(longest)}."
        reader.report(values["default"], f"{path}.default", what, "Choose one in between.")
    if 0 < total < longest:
        what = f"The longest with extensions, {format_duration(total)}, is shorter than the longest, {format_duration(longest)}."
        reader.report(values["max_total"], f"{path}.max_total", what, "Raise it, or leave it out: then the longest counts.")
    return _Durations(smallest, usual, longest, total)


def _read_approval(reader: Reader, node: yaml.Node, path: str, kind: str) -> Approval:
    values = reader.mapping(node, path, required=("required",), optional=("quorum", "approvers")) or {}
    required = reader.flag(values["required"], f"{path}.required") if "required" in values else None
    quorum = reader.whole_number(values["quorum"], f"{path}.quorum", smallest=1, largest=_LARGEST_QUORUM) if "quorum" in values else 1
    approvers = _read_people(reader, values["approvers"], f"{path}.approvers", check_group) if "approvers" in values else _NOBODY
    if required is False:
        if "quorum" in values:
            reader.report(
                values["quorum"],
                f"{path}.quorum",
                "A quorum has no meaning while approval is not required.",
                "Remove it, or set required: true.",
            )
        return Approval(required=False, quorum=0, approvers=approvers)
    # Then the admins of the group decide, or the operators of the pool.
    may_be_left_out = kind in _STAND_INS and "approvers" not in values
    if required and not may_be_left_out and not ("approvers" in values and has_items(values["approvers"])):
        remedy = "Name groups or users in approvers" + (
            f", or leave it out: then {_STAND_INS[kind]} approve." if kind in _STAND_INS else "."
        )
        reader.report(values.get("approvers", node), f"{path}.approvers", "Approval is required but nobody may approve.", remedy)
    elif quorum and not (approvers.groups or approvers.groups_only) and 0 < len(approvers.users) < quorum:
        what = f"{quorum} approvals are needed but only {len(approvers.users)} people may approve."
        reader.report(values.get("quorum", node), f"{path}.quorum", what, "Lower it, or name more approvers.")
    return Approval(bool(required), quorum or 0, approvers)


def _read_ticket(reader: Reader, node: yaml.Node, path: str) -> Ticket:
    values = reader.mapping(node, path, required=("required",), optional=("pattern",)) or {}
    required = reader.flag(values["required"], f"{path}.required") if "required" in values else None
    pattern = (reader.text(values["pattern"], f"{path}.pattern", longest=LONGEST_PATTERN) or "") if "pattern" in values else ""
    fault = pattern_fault(pattern)
    if fault:
        reader.report(
            values["pattern"],
            f"{path}.pattern",
            f"“{shown(pattern)}” is not a pattern: {fault}.",
            "Write a regular expression like CHG-[0-9]+.",
        )
        pattern = ""
    return Ticket(bool(required), pattern)
