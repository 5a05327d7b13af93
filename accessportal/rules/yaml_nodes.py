"""Reading YAML node by node, keeping line numbers and collecting every mistake. Knows nothing of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import yaml

from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest
from accessportal.rules.states import InvalidRules, RuleProblem

LARGEST_FILE = 1_000_000
_DEEPEST = 20
_MOST_PROBLEMS = 100
_LONGEST_TEXT = 256
# libyaml where the installed PyYAML has it (all its wheels do): thirty times faster and with its own depth limit.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


def parse(text: str | bytes) -> yaml.Node | None:
    """The root node, ``None`` for a file without any content.

    :raises InvalidRules: for anything that is not one plain YAML document of UTF-8 text of at most 1 MB.
    """
    source = _readable(text)
    try:
        _refuse_tricks(source)
        node: yaml.Node | None = yaml.compose(source, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InvalidRules((_syntax_problem(source, error),)) from error
    return node


def shown(text: str) -> str:
    """``text`` as it may stand in a message: short, on one line."""
    line = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return line if len(line) <= 60 else line[:60] + "…"


def _readable(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > LARGEST_FILE:
        raise _stop(1, f"A rules file has at most 1 MB; this one has {len(raw) / 1e6:.1f} MB.", "Use OUs and tags instead of lists.")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _stop(line, f"A rules file is UTF-8 text; byte {error.start} is not.", "Save it as UTF-8.") from error


def _stop(line: int, message: str, remedy: str) -> InvalidRules:
    return InvalidRules((RuleProblem(line, "", "", message, remedy),))


def _refuse_tricks(source: str) -> None:
    """Aliases can blow a small file up to gigabytes, tags and documents say what no rule needs, depth eats the stack."""
    problems, depth, documents = [], 0, 0
    for event in yaml.parse(source, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            message = "Anchors (&) and aliases (*) are not allowed."
            problems.append(RuleProblem(line, "", "", message, "Write the value out, or put it in quotes."))
        elif getattr(event, "tag", None):
            problems.append(RuleProblem(line, "", "", "Tags (!) are not allowed.", "Put text that starts with ! in quotes."))
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                problems.append(RuleProblem(line, "", "", "A rules file is one document.", "Remove the --- line."))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            message = f"Lists and keys are nested at most {_DEEPEST} deep."
            problems.append(RuleProblem(line, "", "", message, "See the example in docs/rules.md."))
            break
        if len(problems) >= _MOST_PROBLEMS:
            break
    if problems:
        raise InvalidRules(tuple(problems))


def _syntax_problem(source: str, error: yaml.YAMLError) -> RuleProblem:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    # A character that YAML does not allow comes with its place in the UTF-8 text instead of a mark.
    before = source.encode()[: getattr(error, "position", 0)]
    line = mark.line + 1 if mark is not None else before.count(b"\n") + 1
    lines = source.split("\n")
    # The end of the text is said to be on a line after the last.
    line = min(line, len(lines) - (not lines[-1])) or 1
    has_tab = re.match(r"\s*\t", lines[line - 1]) is not None
    remedy = "Indent with spaces, never with tabs." if has_tab else "Check indentation, colons and quotes around this line."
    return RuleProblem(line, "", "", f"This is not YAML: {problem}.", remedy)


class Reader:
    """Typed reads of nodes. A read that fails notes the problem and returns ``None``; the caller goes on."""

    def __init__(self) -> None:
        self.problems: list[RuleProblem] = []
        self.rule_name = ""

    def report(self, node: yaml.Node, path: str, message: str, remedy: str) -> None:
        self.problems.append(RuleProblem(node.start_mark.line + 1, path, self.rule_name, message, remedy))
        if len(self.problems) >= _MOST_PROBLEMS:
            self.finish()

    def finish(self) -> None:
        """Raise everything noted so far, if anything."""
        if self.problems:
            raise InvalidRules(tuple(sorted(self.problems, key=lambda problem: problem.line)))

    def mapping(
        self, node: yaml.Node, path: str, *, required: Sequence[str] = (), optional: Sequence[str] = ()
    ) -> dict[str, yaml.Node] | None:
        """The values by key; unknown, repeated and missing keys are noted."""
        values = self.free_mapping(node, path)
        if values is None:
            return None
        known = [*required, *optional]
        for key in list(values):
            if key not in known:
                self.report(values.pop(key), _join(path, key), f"“{shown(key)}” is not a key here.", f"The keys are {', '.join(known)}.")
        for key in required:
            if key not in values:
                self.report(node, _join(path, key), f"The key {key} is missing.", "Write it; docs/rules.md says what it takes.")
        return values

    def free_mapping(self, node: yaml.Node, path: str) -> dict[str, yaml.Node] | None:
        """The values by key, whatever the keys are."""
        if not isinstance(node, yaml.MappingNode):
            self.report(
                node, path, f"Here keys with values are needed, not {_kind(node)}.", "Write one “key: value” a line, or {key: value}."
            )
            return None
        values: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = self.text(key_node, _join(path, "(key)"))
            if key is None:
                continue
            if key in values:
                self.report(key_node, _join(path, key), f"The key {shown(key)} stands here twice.", "Keep one of them.")
            values[key] = value
        return values

    def sequence(self, node: yaml.Node, path: str) -> list[yaml.Node] | None:
        if not isinstance(node, yaml.SequenceNode):
            self.report(node, path, f"Here a list is needed, not {_kind(node)}.", "Write [a, b], or one “- a” a line.")
            return None
        items: list[yaml.Node] = node.value
        return items

    def text(self, node: yaml.Node, path: str, *, longest: int = _LONGEST_TEXT) -> str | None:
        """A single value as it is written: ``012345678901`` and ``yes`` stay what the person typed."""
        if not isinstance(node, yaml.ScalarNode) or node.tag == f"{_TAG}null":
            self.report(node, path, f"Here a text is needed, not {_kind(node)}.", "Write one value.")
            return None
        value: str = node.value
        if not value.strip() or value != value.strip():
            self.report(node, path, "A text is not empty and has no space around it.", "Remove the space, or write the text.")
            return None
        if len(value) > longest or not value.isprintable():
            self.report(node, path, f"A text here has at most {longest} printable characters on one line.", "Shorten it.")
            return None
        return value

    def texts(self, node: yaml.Node, path: str, check: Callable[[str], str]) -> tuple[str, ...]:
        """A list of texts, each once, in order. ``check`` returns what is wrong with one (empty: nothing)."""
        found: dict[str, None] = {}
        for position, item in enumerate(self.sequence(node, path) or ()):
            place = f"{path}[{position}]"
            value = self.text(item, place)
            if value is None:
                continue
            fault = check(value)
            if fault:
                self.report(item, place, f"“{shown(value)}” {fault}", "")
            else:
                found[value] = None
        return tuple(found)

    def flag(self, node: yaml.Node, path: str) -> bool | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}bool":
            return str(node.value).lower() in {"true", "yes", "on"}
        self.report(node, path, f"Here true or false is needed, not {_kind(node)}.", "Write it without quotes.")
        return None

    def whole_number(self, node: yaml.Node, path: str, *, smallest: int, largest: int) -> int | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}int" and re.fullmatch(r"-?[0-9]{1,9}", node.value):
            value = int(node.value)
            if smallest <= value <= largest:
                return value
        self.report(node, path, f"Here a whole number from {smallest} to {largest} is needed.", "Write it in digits, without quotes.")
        return None

    def duration(self, node: yaml.Node, path: str) -> int | None:
        """Whole seconds."""
        written = self.text(node, path)
        if written is None:
            return None
        try:
            return parse_duration(written)
        except InvalidRequest as error:
            # The other messages say how to write one.
            self.report(node, path, error.message, "Write it like 30m or 8h." if error.code == "duration_not_positive" else "")
            return None


def _join(path: str, key: str) -> str:
    return f"{path}.{shown(key)}" if path else shown(key)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "keys with values"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node.tag == f"{_TAG}null" else f"“{shown(node.value)}”"
