"""Reading what a rule offers and where: the keys that differ between the kinds of access. Everything else is ``loading``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import yaml

from accessportal.directory.states import GroupRole
from accessportal.rules.states import AWS_ACCOUNT, EVERYBODY, GROUP, SANDBOX, WHOLE_POOL, Effect, Targets
from accessportal.rules.yaml_nodes import Reader, shown

# The directory's own form of a group path; another one could never have anybody in it.
_GROUP = re.compile(r"(?:/[a-z0-9_-][a-z0-9._-]*)+")
_LONGEST_PREFIX = 64
_OU = re.compile(r"/|(?:/[^/\s](?:[^/]*[^/\s])?)+")


@dataclass(frozen=True, slots=True)
class Offers:
    """One kind's own keys: ``key`` lists what is offered (empty: this kind has no such list), ``target_keys`` stand below
    ``targets``, ``limit_keys`` are further ones of an allow. ``check`` returns what is wrong with one of the offered (empty:
    nothing)."""

    key: str
    what: str
    target_keys: tuple[str, ...]
    read_targets: Callable[[Reader, yaml.Node, str], Targets]
    check: Callable[[str], str]
    limit_keys: tuple[str, ...] = ()

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys of a rule that this kind alone has."""
        return (self.key, *self.limit_keys) if self.key else self.limit_keys


def read_offers(reader: Reader, values: Mapping[str, yaml.Node], path: str, offers: Offers, effect: Effect) -> tuple[str, ...]:
    """What the rule names under its kind's key; nothing when the key is left out, which only a deny may do."""
    if offers.key not in values:
        return ()
    node, place = values[offers.key], f"{path}.{offers.key}"
    if isinstance(node, yaml.SequenceNode) and not node.value:
        reader.report(node, place, "The list is empty.", f"Name {offers.what}; a deny rule without this key covers all.")
    found = reader.texts(node, place, offers.check)
    if offers.key == "roles" and effect is Effect.DENY:
        _require_higher_roles(reader, node, place, found)
    return found


def has_items(node: yaml.Node) -> bool:
    """Whether any list in it has an item, well written or not: badly written is a mistake of its own."""
    return not isinstance(node, yaml.MappingNode) or any(
        not isinstance(value, yaml.CollectionNode) or value.value for _, value in node.value
    )


def check_group(value: str) -> str:
    if _GROUP.fullmatch(value):
        return ""
    return "is not a group path: write it like /engineering/payments, in lower case, without a slash at the end."


def _require_higher_roles(reader: Reader, node: yaml.Node, place: str, names: tuple[str, ...]) -> None:
    """Who is refused a role but not one that includes it would only ask for more."""
    named = [GroupRole(name) for name in names]
    for role in sorted(GroupRole, key=lambda one: one.rank):
        lesser = [one.value for one in named if one.rank < role.rank]
        if lesser and role not in named:
            message = f"It refuses {lesser[0]} but not {role.value}, which includes it."
            reader.report(node, place, message, f"Name {role.value} too, or leave roles out to refuse all.")
            return


def _check_ou(value: str) -> str:
    return "" if _OU.fullmatch(value) else "is not an OU path: write it like /Workloads/Prod, or / for all, without a slash at the end."


def _check_account(value: str) -> str:
    if value.isascii() and value.isdigit():
        return "" if len(value) == 12 else "is not an account id: write it like 123456789012, 12 digits."
    return "" if len(value) <= 50 else "is not an account name: write it like payments-dev, at most 50 characters."


def _check_permission_set(value: str) -> str:
    return (
        ""
        if re.fullmatch(r"[A-Za-z0-9_+=,.@-]{1,32}", value)
        else "is not a permission set name: write it like ReadOnlyAccess, 1 to 32 letters, digits and _+=,.@- ."
    )


def _check_tag_value(value: str) -> str:
    return ""


def _check_target_group(value: str) -> str:
    return "" if value == EVERYBODY else check_group(value)


def _check_role(value: str) -> str:
    return "" if value in tuple(GroupRole) else f"is not a role: write {' or '.join(sorted(GroupRole))}, in lower case."


def _read_account_targets(reader: Reader, node: yaml.Node, path: str) -> Targets:
    values = reader.mapping(node, path, optional=("ous", "accounts", "tags")) or {}
    ous = reader.texts(values["ous"], f"{path}.ous", _check_ou) if "ous" in values else ()
    accounts = reader.texts(values["accounts"], f"{path}.accounts", _check_account) if "accounts" in values else ()
    tags: dict[str, tuple[str, ...]] = {}
    if "tags" in values:
        for key, accepted in (reader.free_mapping(values["tags"], f"{path}.tags") or {}).items():
            tags[key] = reader.texts(accepted, f"{path}.tags.{shown(key)}", _check_tag_value)
            if isinstance(accepted, yaml.SequenceNode) and not accepted.value:
                reader.report(
                    accepted,
                    f"{path}.tags.{shown(key)}",
                    "A tag without accepted values matches nothing.",
                    "Name values, or remove the tag.",
                )
    if not has_items(node):
        reader.report(
            node,
            path,
            "A rule without targets would be about every account.",
            "Name ous, accounts or tags; “ous: [/]” means every account.",
        )
    return Targets(ous, accounts, tags)


def _read_group_targets(reader: Reader, node: yaml.Node, path: str) -> Targets:
    values = reader.mapping(node, path, optional=("groups", "subtrees")) or {}
    read = {key: reader.texts(value, f"{path}.{key}", _check_target_group) for key, value in values.items()}
    if not has_items(node):
        reader.report(
            node, path, "A rule without targets would be about no group.", "Name groups or subtrees; “subtrees: [/]” means every group."
        )
    return Targets(groups=read.get("groups", ()), subtrees=read.get("subtrees", ()))


def _read_pool_targets(reader: Reader, node: yaml.Node, path: str) -> Targets:
    values = reader.mapping(node, path, optional=("pool", "name_prefixes")) or {}
    pool = reader.text(values["pool"], f"{path}.pool") or "" if "pool" in values else ""
    if pool and pool != WHOLE_POOL:
        reader.report(
            values["pool"], f"{path}.pool", f"“{shown(pool)}” is not possible here.", f"Write {WHOLE_POOL}, or use name_prefixes."
        )
    prefixes = reader.texts(values["name_prefixes"], f"{path}.name_prefixes", _check_prefix) if "name_prefixes" in values else ()
    if pool and prefixes:
        reader.report(node, path, "The whole pool and some of its names are named at once.", "Keep pool or name_prefixes.")
    elif not has_items(node) or ("pool" not in values and not values.get("name_prefixes")):
        reader.report(
            node, path, "A rule without targets would be about no sandbox.", "Write “pool: all” for any sandbox, or name name_prefixes."
        )
    return Targets(name_prefixes=prefixes, pool=pool)


def _check_prefix(value: str) -> str:
    if 1 <= len(value) <= _LONGEST_PREFIX and value.isprintable():
        return ""
    return f"is not the beginning of a name: write 1 to {_LONGEST_PREFIX} printable characters, like lab-."


def _check_no_offer(value: str) -> str:
    return "has no meaning for a sandbox."


OFFERS: Mapping[str, Offers] = {
    AWS_ACCOUNT: Offers("permission_sets", "permission sets", ("ous", "accounts", "tags"), _read_account_targets, _check_permission_set),
    GROUP: Offers("roles", "roles", ("groups", "subtrees"), _read_group_targets, _check_role),
    SANDBOX: Offers("", "", ("name_prefixes", "pool"), _read_pool_targets, _check_no_offer, limit_keys=("most_per_person", "extend")),
}
