"""Reading YAML node by node, keeping line numbers and collecting every mistake. Knows nothing of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Self

import yaml

from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import cut
from accessportal.rules.states import InvalidRules, RuleProblem

LARGEST_FILE = 1_000_000
_DEEPEST = 20
_MOST_PROBLEMS = 100
_LONGEST_TEXT = 256
# libyaml where the installed PyYAML has it (all its wheels do): thirty times faster and with its own depth limit.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


def parse(text: str | bytes) -> yaml.Node | None:
    """Give the root node, ``None`` for a file without content; InvalidRules for what is not one plain YAML document of UTF-8 text of at
    most 1 MB."""
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
    return cut(line)


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


class Notes:
    """Every mistake found so far; each belongs to the rule that is being read."""

    def __init__(self) -> None:
        self._problems: list[RuleProblem] = []
        self.rule_name = ""

    def add(self, node: yaml.Node, path: str, message: str, remedy: str) -> None:
        self._problems.append(RuleProblem(node.start_mark.line + 1, path, self.rule_name, message, remedy))
        if len(self._problems) >= _MOST_PROBLEMS:
            self.finish()

    def finish(self) -> None:
        """Raise everything noted so far, if anything."""
        if self._problems:
            raise InvalidRules(tuple(sorted(self._problems, key=lambda problem: problem.line)))


class Place:
    """A node with its path. A read that fails notes the problem and gives nothing; so does, without a note, a key that is not there
    (``is_given``), which is told of at the node above it.
    """

    def __init__(self, notes: Notes, node: yaml.Node, path: str, *, is_given: bool = True) -> None:
        self.notes = notes
        self.node = node
        self.path = path
        self.is_given = is_given
        self._found: dict[str, Place] = {}

    def __getitem__(self, key: str) -> Place:
        """The value of a key, after :meth:`section`."""
        return self._found.get(key) or Place(self.notes, self.node, _join(self.path, key), is_given=False)

    def report(self, message: str, remedy: str) -> None:
        self.notes.add(self.node, self.path, message, remedy)

    @property
    def has_items(self) -> bool:
        """Whether any list in it has an item, well written or not: badly written is a mistake of its own."""
        if not isinstance(self.node, yaml.MappingNode):
            return self.is_given
        return self.is_given and any(not isinstance(value, yaml.CollectionNode) or value.value for _, value in self.node.value)

    @property
    def is_empty_list(self) -> bool:
        return self.is_given and isinstance(self.node, yaml.SequenceNode) and not self.node.value

    def section(self, *, required: Sequence[str] = (), optional: Sequence[str] = ()) -> Self:
        """Read the keys; unknown, repeated and missing ones are noted."""
        found = self._found = self.entries()
        known = [*required, *optional]
        for key in [key for key in found if key not in known]:
            found.pop(key).report(f"“{shown(key)}” is not a key here.", f"The keys are {', '.join(known)}.")
        for key in required if self.is_given and isinstance(self.node, yaml.MappingNode) else ():
            if key not in found:
                self[key].report(f"The key {key} is missing.", "Write it; docs/rules.md says what it takes.")
        return self

    def entries(self) -> dict[str, Place]:
        """The values by key, whatever the keys are."""
        values: dict[str, Place] = {}
        if not self.is_given:
            return values
        if not isinstance(self.node, yaml.MappingNode):
            self.report(f"Here keys with values are needed, not {_kind(self.node)}.", "Write one “key: value” a line, or {key: value}.")
            return values
        for key_node, value in self.node.value:
            key = Place(self.notes, key_node, _join(self.path, "(key)")).text()
            if key in values:
                self.notes.add(key_node, _join(self.path, key), f"The key {shown(key)} stands here twice.", "Keep one of them.")
            if key:
                values[key] = Place(self.notes, value, _join(self.path, key))
        return values

    def items(self) -> list[Place]:
        if not self.is_given:
            return []
        if not isinstance(self.node, yaml.SequenceNode):
            self.report(f"Here a list is needed, not {_kind(self.node)}.", "Write [a, b], or one “- a” a line.")
            return []
        return [Place(self.notes, item, f"{self.path}[{position}]") for position, item in enumerate(self.node.value)]

    def text(self, *, longest: int = _LONGEST_TEXT) -> str:
        """A single value as it is written: ``012345678901`` and ``yes`` stay what the person typed."""
        if not self.is_given:
            return ""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == f"{_TAG}null":
            self.report(f"Here a text is needed, not {_kind(self.node)}.", "Write one value.")
            return ""
        value: str = self.node.value
        if not value.strip() or value != value.strip():
            self.report("A text is not empty and has no space around it.", "Remove the space, or write the text.")
            return ""
        if len(value) > longest or not value.isprintable():
            self.report(f"A text here has at most {longest} printable characters on one line.", "Shorten it.")
            return ""
        return value

    def texts(self, check: Callable[[str], str] = lambda _value: "") -> tuple[str, ...]:
        """A list of texts, each once, in order. ``check`` returns what is wrong with one (empty: nothing)."""
        found: dict[str, None] = {}
        for item in self.items():
            value = item.text()
            fault = check(value) if value else ""
            if fault:
                item.report(f"“{shown(value)}” {fault}", "")
            elif value:
                found[value] = None
        return tuple(found)

    def choice(self, choices: Sequence[str]) -> str:
        value = self.text()
        if value and value not in choices:
            self.report(f"“{shown(value)}” is not possible here.", f"Write {' or '.join(choices)}.")
        return value if value in choices else ""

    def flag(self) -> bool | None:
        if not self.is_given:
            return None
        if isinstance(self.node, yaml.ScalarNode) and self.node.tag == f"{_TAG}bool":
            return str(self.node.value).lower() in {"true", "yes", "on"}
        self.report(f"Here true or false is needed, not {_kind(self.node)}.", "Write it without quotes.")
        return None

    def whole_number(self, *, smallest: int, largest: int) -> int | None:
        if not self.is_given:
            return None
        if isinstance(self.node, yaml.ScalarNode) and self.node.tag == f"{_TAG}int" and re.fullmatch(r"-?[0-9]{1,9}", self.node.value):
            value = int(self.node.value)
            if smallest <= value <= largest:
                return value
        self.report(f"Here a whole number from {smallest} to {largest} is needed.", "Write it in digits, without quotes.")
        return None

    def duration(self) -> int | None:
        """Whole seconds."""
        written = self.text()
        if not written:
            return None
        try:
            return parse_duration(written)
        except InvalidRequest as error:
            # The other messages say how to write one.
            self.report(error.message, "Write it like 30m or 8h." if error.code == "duration_not_positive" else "")
            return None


def _join(path: str, key: str) -> str:
    return f"{path}.{shown(key)}" if path else shown(key)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "keys with values"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node.tag == f"{_TAG}null" else f"“{shown(node.value)}”"
