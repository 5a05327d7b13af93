"""moto's DynamoDB with the same answers in half the time: it reads the same expressions anew at every call, and asks each value ten
times for its type. ``tests/unit/test_quick_moto.py`` compares it with moto as it comes."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import moto.dynamodb.comparisons as conditions
import moto.dynamodb.parsing.validators as updates
import moto.dynamodb.responses
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.utilities import dynamo_to_dict
from moto.dynamodb.parsing import ast_nodes, expressions

_Parser: Any = conditions.ConditionExpressionParser
_Validator: Any = updates.UpdateExpressionValidator
_Node: Any = vars(ast_nodes)["Node"]
_parse = _Parser.parse
_operand = _Parser._make_operand
_Value: Any = DynamoType
_size = _Value.size


def repair_speed() -> None:
    """For the rest of this process, once."""
    _remember_expressions()
    _Value.size, _Value.__deepcopy__ = _quick_size, _quick_copy
    vars(moto.dynamodb.responses)["dynamo_to_dict"] = _plain


def _quick_size(self: Any) -> int:
    return len(self.value) if self.type == "S" and self.value.isascii() else _size(self)


def _quick_copy(self: Any, _memo: Any) -> Any:
    copied = object.__new__(DynamoType)
    copied.type, value = self.type, self.value
    if isinstance(value, dict):
        value = {name: _quick_copy(inner, None) for name, inner in value.items()}
    elif isinstance(value, list | set):
        value = [_quick_copy(inner, None) if isinstance(inner, DynamoType) else inner for inner in value]
    copied.value = value
    return copied


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is bool or kind is int:
        return value
    if kind is dict:
        return {name: _plain(inner) for name, inner in value.items()}
    if kind is list:
        return [_plain(inner) for inner in value]
    if kind is DynamoType and value.type not in ("B", "BS"):
        return {value.type: _plain(value.value)}
    return dynamo_to_dict(value)


def _remember_expressions() -> None:
    parser = vars(expressions)["UpdateExpressionParser"]
    parser.make = functools.cache(parser.make)
    _Parser.parse, _Parser._make_operand = _parse_known, _make_operand
    _Validator.__init__ = _prepare
    vars(ast_nodes)["DepthFirstTraverser"].traverse = _traverse


class _AnyValue(dict[str, None]):
    def __missing__(self, _name: str) -> None:
        return None


@functools.cache
def _tree(text: str, names: tuple[tuple[str, str], ...] | None) -> tuple[Any, list[str], list[str]]:
    """The condition without its values, and which names and values it speaks of. Raises what moto raises."""
    found: list[Any] = []
    parser = _Parser(text, None if names is None else dict(names), _AnyValue())
    parser._make_op_condition = found.append
    _parse(parser)
    return found[0], parser.expr_attr_names_found, parser.expr_attr_values_found


def _parse_known(self: Any) -> Any:
    if not self.condition_expression:
        return _parse(self)
    names = self.expression_attribute_names
    tree, found_names, found_values = _tree(self.condition_expression, None if names is None else tuple(names.items()))
    self.expr_attr_names_found.extend(found_names)
    self.expr_attr_values_found.extend(found_values)
    return self._make_op_condition(tree)


def _make_operand(self: Any, node: Any) -> Any:
    if node.kind == self.Kind.EXPRESSION_ATTRIBUTE_VALUE:
        return conditions.AttributeValue(self.expression_attribute_values[node.text])
    return _operand(self, node)


def _prepare(self: Any, expression: Any, expression_attribute_names: Any, expression_attribute_values: Any, item: Any, table: Any) -> None:
    """The first three of moto's looks at an update ask only for its words: once is enough for each."""
    self.expression_attribute_names, self.expression_attribute_values = expression_attribute_names, expression_attribute_values
    self.item, self.table = item, table
    self.processors = self.get_ast_processors()[_ABOUT_WORDS:]
    names = tuple((expression_attribute_names or {}).items())
    self.node_to_validate = pickle.loads(_looked_at(expression, names, tuple(table.table_key_attrs)))  # noqa: S301  (our own)


_ABOUT_WORDS = 3


@functools.cache
def _looked_at(expression: Any, names: tuple[tuple[str, str], ...], keys: tuple[str, ...]) -> bytes:
    node = copy.deepcopy(expression)
    for look in (
        updates.ActionCountValidator(),
        updates.OverlappingPathsValidator(dict(names)),
        updates.UpdateHashRangeKeyValidator(list(keys), dict(names)),
    ):
        node = look.traverse(node)
    return pickle.dumps(node)


def _traverse(self: Any, root: Any) -> Any:
    """As moto's own, which asks at every node anew which kinds of nodes it looks for."""
    wanted = tuple(self._processing_map())

    def walk(node: Any, place: int) -> Any:
        if not isinstance(node, _Node):
            return node
        parent = node.parent
        for number, child in enumerate(node.children or ()):
            self.pre_processing_of_child(node, number)
            walk(child, number)
        if isinstance(node, wanted):
            node = self.process(node)
            node.parent = parent
            if parent:
                parent.children[place] = node
        return node

    return walk(root, -1)
