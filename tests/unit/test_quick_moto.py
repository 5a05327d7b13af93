"""moto made quicker gives the answers of moto as it comes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws  # noqa: F401 -- the other process's
from pynamodb.connection import Connection

from tests import quick_botocore, quick_dynamodb
from tests.fixtures_twin import plain_twin

KEY = {"id": {"S": "one"}}
ITEM = {**KEY, "a": {"S": "x"}, "n": {"N": "5"}, "l": {"L": [{"S": "v"}]}, "m": {"M": {"z": {"S": "w"}}}}
VALUES = {":a": {"S": "x"}, ":n": {"N": "2"}, ":l": {"L": [{"S": "y"}]}, ":m": {"M": {"z": {"B": b"b"}}}, ":e": {"S": ""}}
NAMES = {"#a": "a", "#n": "n", "#l": "l", "#m": "m", "#z": "z", "#id": "id", "#k": "k"}
EVERY_KIND: dict[str, Any] = {
    "id": {"S": "every"},
    "text": {"S": "é" * 300},
    "number": {"N": "1.50"},
    "bytes": {"B": b"\x00\xff"},
    "no": {"NULL": True},
    "yes": {"BOOL": False},
    "texts": {"SS": ["b", "a"]},
    "numbers": {"NS": ["2", "1"]},
    "many": {"BS": [b"1", b"2"]},
    "map": {"M": {"list": {"L": [{"M": {}}, {"L": []}, {"B": b"b"}, {"SS": ["c"]}, {"S": ""}]}}},
}
UPDATES = [
    *("SET #a = :a", "SET #n = if_not_exists(#n, :n) + :n", "SET #n = #n - :n, #l = list_append(#l, :l)", "SET #m.#z = :a, #a = #n"),
    *("SET #l = :l, #m = :m", "REMOVE #l[0], #a", "REMOVE #m.#z SET #k = :a", "ADD #n :n", "ADD #n :n SET #a = :a REMOVE #m"),
    # What is wrong with these is said in the same words.
    *("SET #id = :a", "SET #a = :a, #a = :n", "SET #a = :a SET #n = :n", "SET #k = :e", "SET #a = :none", "SET #none = :a", "SET #a"),
    *("SET #a.#z = :a", "SET #n = #none2 + :n", "SET #a = #a + :n", "DELETE #a :a", "SET name = :a"),
]
CONDITIONS = [
    *("attribute_exists(#a)", "attribute_not_exists(#id)", "#a = :a AND (#n <> :n OR NOT begins_with(#a, :a))", "size(#a) > :n"),
    *("#n BETWEEN :n AND :n", "#a IN (:a, :n)", "contains(#l, :a) OR #m.#z = :a", "#l[0] = :a", "attribute_type(#a, :a)", "((#a = :a))"),
    *("#a = :none", "#none = :a", "#a =", "name = :a", "#a = :a AND"),
]


ROWS: list[dict[str, Any]] = [
    {"pk": {"S": pk}, "sk": {"S": sk}, **more}
    for pk, sk, more in (
        ("p", "a1", {"state": {"S": "due"}, "at": {"N": "3"}, "note": {"S": "x"}}),
        ("p", "a2", {"state": {"S": "due"}, "at": {"N": "10"}, "texts": {"SS": ["b", "c"]}}),
        ("p", "b1", {"state": {"S": "done"}, "at": {"N": "2"}}),
        ("p", "b2", {"state": {"S": "due"}}),
        ("q", "a1", {"state": {"S": "due"}, "at": {"N": "-1.5"}, "map": {"M": {"z": {"N": "7"}, "l": {"L": [{"S": "v"}]}}}}),
    )
]
START = {"pk": {"S": "p"}, "sk": {"S": "a1"}}
READS: list[tuple[str, dict[str, Any]]] = [
    ("query", {"KeyConditionExpression": "#pk = :p"}),
    ("query", {"KeyConditionExpression": "#pk = :p AND #sk > :a", "ScanIndexForward": False, "Limit": 2}),
    ("query", {"KeyConditionExpression": "#pk = :p AND begins_with(#sk, :a)", "ConsistentRead": True}),
    ("query", {"KeyConditionExpression": "(#pk = :p AND #sk BETWEEN :a AND :b)", "Limit": 1}),
    ("query", {"KeyConditionExpression": "#pk = :p", "ExclusiveStartKey": START, "Limit": 2}),
    ("query", {"KeyConditionExpression": "#pk = :p", "FilterExpression": "#state = :due", "ProjectionExpression": "#sk, #at"}),
    ("query", {"KeyConditionExpression": "#pk = :p", "Select": "COUNT", "ReturnConsumedCapacity": "TOTAL"}),
    ("query", {"KeyConditionExpression": "#state = :due", "IndexName": "ByState"}),
    ("query", {"KeyConditionExpression": "#state = :due AND #at <= :five", "IndexName": "ByState", "Limit": 1}),
    ("query", {"KeyConditionExpression": "#state = :due", "IndexName": "ByState", "ScanIndexForward": False, "Limit": 2}),
    (
        "query",
        {
            "KeyConditionExpression": "#state = :due",
            "IndexName": "ByState",
            "ExclusiveStartKey": {**START, "state": {"S": "due"}, "at": {"N": "3"}},
        },
    ),
    ("query", {"KeyConditionExpression": "#state = :due", "IndexName": "ByState", "FilterExpression": "attribute_exists(#note)"}),
    ("query", {"KeyConditionExpression": "#state = :due", "IndexName": "All"}),
    ("query", {"KeyConditionExpression": "#state = :due", "IndexName": "None"}),
    ("query", {"KeyConditionExpression": "#sk = :a"}),
    ("query", {"KeyConditionExpression": "#pk = :none"}),
    ("query", {"KeyConditionExpression": "#pk = :p AND #note = :a"}),
    ("scan", {}),
    ("scan", {"Limit": 2, "ReturnConsumedCapacity": "TOTAL"}),
    ("scan", {"ExclusiveStartKey": START, "FilterExpression": "#at > :five OR contains(#texts, :b)"}),
    ("scan", {"IndexName": "ByState", "ProjectionExpression": "#sk"}),
    ("scan", {"Segment": 0, "TotalSegments": 2}),
    ("scan", {"Segment": 2, "TotalSegments": 2}),
    ("scan", {"Select": "COUNT"}),
    ("get_item", {"Key": START, "ReturnConsumedCapacity": "TOTAL"}),
    ("get_item", {"Key": {"pk": {"S": "p"}}}),
    ("get_item", {"Key": {"pk": {"S": "p"}, "sk": {"S": "none"}}}),
]
FREE = {"pk": {"S": "p"}, "sk": {"S": "free"}}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("put_item", {"Item": {**FREE, "state": {"S": "due"}, "at": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(#pk)"}),
    ("put_item", {"Item": START, "ConditionExpression": "attribute_not_exists(#pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
    ("put_item", {"Item": {**START, "at": {"N": "4"}}, "ReturnValues": "ALL_OLD", "ReturnConsumedCapacity": "TOTAL"}),
    ("put_item", {"Item": {**START, "at": {"S": "4"}}}),
    ("put_item", {"Item": {**START, "state": {"S": ""}}}),
    ("put_item", {"Item": {"pk": {"S": "p"}}}),
    ("put_item", {"Item": {**START, "note": {"S": "x" * 410_000}}}),
    ("delete_item", {"Key": START, "ConditionExpression": "#state = :due", "ReturnValues": "ALL_OLD"}),
    ("delete_item", {"Key": START, "ConditionExpression": "#state <> :due"}),
    ("delete_item", {"Key": FREE}),
    ("update_item", {"Key": FREE, "UpdateExpression": "ADD #at :five, #texts :set"}),
    ("update_item", {"Key": START, "UpdateExpression": "ADD #texts :set", "ConditionExpression": "size(#note) < :five"}),
    ("update_item", {"Key": START, "UpdateExpression": "DELETE #texts :set", "ReturnValues": "ALL_OLD"}),
    ("update_item", {"Key": {"pk": {"S": "p"}, "sk": {"S": "a2"}}, "UpdateExpression": "DELETE #texts :set", "ReturnValues": "ALL_NEW"}),
    ("update_item", {"Key": {"pk": {"S": "p"}, "sk": {"S": "a2"}}, "UpdateExpression": "DELETE #texts :all", "ReturnValues": "ALL_NEW"}),
    ("update_item", {"Key": {"pk": {"S": "q"}, "sk": {"S": "a1"}}, "UpdateExpression": "SET #map.#z = #map.#z - :five REMOVE #at"}),
    ("update_item", {"Key": {"pk": {"S": "q"}, "sk": {"S": "a1"}}, "UpdateExpression": "REMOVE #map.#l[0]", "ReturnValues": "ALL_NEW"}),
    ("update_item", {"Key": START, "UpdateExpression": "SET #sk = :a"}),
    ("update_item", {"Key": START, "UpdateExpression": "SET #state = :due", "ConditionExpression": "#at = :five"}),
]
TRANSACTIONS: list[list[tuple[str, dict[str, Any]]]] = [
    [("Put", {"Item": FREE, "ConditionExpression": "attribute_not_exists(#pk)"}), ("Delete", {"Key": START})],
    [
        ("Update", {"Key": START, "UpdateExpression": "SET #at = :five REMOVE #note", "ConditionExpression": "#state = :due"}),
        ("ConditionCheck", {"Key": FREE, "ConditionExpression": "attribute_not_exists(#pk)"}),
    ],
    [
        ("Update", {"Key": FREE, "UpdateExpression": "SET #at = :five"}),
        (
            "ConditionCheck",
            {"Key": START, "ConditionExpression": "#state <> :due", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
        ),
    ],
    [("Delete", {"Key": START}), ("Put", {"Item": START})],
    [("Delete", {"Key": START, "ConditionExpression": "#state = :none"})],
]
MORE_NAMES = {f"#{name}": name for name in ("pk", "sk", "state", "at", "note", "texts", "map", "z", "l")}
MORE_VALUES = {
    ":p": {"S": "p"},
    ":a": {"S": "a"},
    ":b": {"S": "b"},
    ":due": {"S": "due"},
    ":five": {"N": "5"},
    ":set": {"SS": ["c", "d"]},
    ":all": {"SS": ["b", "c"]},
}


def _named(asked: dict[str, Any]) -> dict[str, Any]:
    """With the names and values that its expressions speak of."""
    words = set(re.findall(r"[#:]\w+", " ".join(text for name, text in asked.items() if name.endswith("Expression"))))
    names = {name: value for name, value in MORE_NAMES.items() if name in words}
    values = {name: value for name, value in MORE_VALUES.items() if name in words}
    more = {"TableName": "Rows"} | ({"ExpressionAttributeNames": names} if names else {})
    return asked | more | ({"ExpressionAttributeValues": values} if values else {})


def _create_rows(client: Any) -> None:
    index = [{"AttributeName": "state", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}]
    client.create_table(
        TableName="Rows",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind} for name, kind in (("pk", "S"), ("sk", "S"), ("state", "S"), ("at", "N"))
        ],
        GlobalSecondaryIndexes=[
            {"IndexName": "ByState", "KeySchema": index, "Projection": {"ProjectionType": "KEYS_ONLY"}},
            {"IndexName": "All", "KeySchema": index[:1], "Projection": {"ProjectionType": "ALL"}},
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def _said(ask: Any, **asked: Any) -> str:
    try:
        answer = ask(**asked)
    except ClientError as error:
        return f"{error} {error.response.get('CancellationReasons')} {error.response.get('Item')}"
    except Exception as error:  # what moto itself stumbles over
        return repr(error)
    return json.dumps({name: value for name, value in answer.items() if name != "ResponseMetadata"}, sort_keys=True)


def answers_about_rows(aws: Callable[[], AbstractContextManager[object]]) -> list[str]:
    """To reads and writes of a table with two keys and two indexes, and all that is in it after each write."""
    told = []
    with aws():
        client: Any = boto3.client("dynamodb", region_name="eu-central-1")
        _create_rows(client)

        def fill() -> None:
            for item in (*ROWS, {**FREE}):
                client.delete_item(TableName="Rows", Key={name: item[name] for name in ("pk", "sk")})
            for item in ROWS:
                client.put_item(TableName="Rows", Item=item)

        fill()
        told += [f"{name} {asked}: {_said(getattr(client, name), **_named(asked))}" for name, asked in READS]
        told.append(_said(client.batch_get_item, RequestItems={"Rows": {"Keys": [START, FREE]}}))
        told.append(_said(client.batch_get_item, RequestItems={"Rows": {"Keys": [START, START]}}))
        everything = {"TableName": "Rows"}
        for batch in ([{"PutRequest": {"Item": FREE}}, {"DeleteRequest": {"Key": START}}], [{"DeleteRequest": {"Key": START}}] * 2):
            told.append(f"{batch}: {_said(client.batch_write_item, RequestItems={'Rows': batch})} {_said(client.scan, **everything)}")
            fill()
        for name, asked in WRITES:
            told.append(f"{name} {asked}: {_said(getattr(client, name), **_named(asked))} {_said(client.scan, **everything)}")
            fill()
        for steps in TRANSACTIONS:
            items = [{verb: _named(asked)} for verb, asked in steps]
            told.append(f"{steps}: {_said(client.transact_write_items, TransactItems=items)} {_said(client.scan, **everything)}")
            fill()
    return told


def answers(aws: Callable[[], AbstractContextManager[object]]) -> list[str]:
    """To every update and every condition, twice, in the order of the table; and the item after each."""
    told = []
    with aws():
        client: Any = boto3.client("dynamodb", region_name="eu-central-1")
        schema = {"AttributeName": "id", "KeyType": "HASH"}
        kinds = [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "k", "AttributeType": "S"}]
        index = {"IndexName": "ByK", "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}
        client.create_table(
            TableName="Things",
            KeySchema=[schema],
            AttributeDefinitions=kinds,
            GlobalSecondaryIndexes=[index],
            BillingMode="PAY_PER_REQUEST",
        )
        for update, condition in [(update, "") for update in UPDATES * 2] + [("SET #a = :a", condition) for condition in CONDITIONS * 2]:
            for values in (VALUES, {**VALUES, ":a": {"S": "x y"}, ":n": {"N": "3"}}):
                client.put_item(TableName="Things", Item=ITEM)
                told.append(f"{update} if {condition}: {_answer(client, update, condition, values)}")
                told.append(str(client.get_item(TableName="Things", Key=KEY).get("Item")))
        client.put_item(TableName="Things", Item=EVERY_KIND)
        told += [str(client.scan(TableName="Things", **more)) for more in ({}, {"FilterExpression": "attribute_exists(bytes)"})]
        found = client.query(TableName="Things", KeyConditionExpression="id = :i", ExpressionAttributeValues={":i": {"S": "every"}})
        found["Items"][0]["map"]["M"]["list"]["L"].clear()
        told += [str(found), str(client.batch_get_item(RequestItems={"Things": {"Keys": [KEY, {"id": {"S": "every"}}]}})["Responses"])]
    return [line.partition("'ResponseMetadata'")[0] for line in told]


def _answer(client: Any, update: str, condition: str, values: dict[str, Any]) -> str:
    asked: dict[str, Any] = {"TableName": "Things", "Key": KEY, "UpdateExpression": update}
    asked |= {"ConditionExpression": condition} if condition else {}
    words = f"{update} {condition}"
    asked["ExpressionAttributeValues"] = {name: value for name, value in values.items() if name in words} or {":q": {"S": "q"}}
    asked["ExpressionAttributeNames"] = {name: value for name, value in NAMES.items() if name in words} or {"#q": "q"}
    try:
        return str(sorted(client.update_item(**asked, ReturnValues="ALL_NEW")["Attributes"].items()))
    except ClientError as error:
        return str(error)
    except Exception as error:  # what moto itself stumbles over
        return repr(error)


def test_every_answer_is_the_same() -> None:
    """moto as it comes is asked in a process of its own."""
    root = Path(__file__).resolve().parents[2]
    script = "from tests.unit.test_quick_moto import *; print(json.dumps([answers(mock_aws), answers_about_rows(mock_aws)]))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root, env=environment)

    assert [answers(plain_twin), answers_about_rows(plain_twin)] == json.loads(asked.stdout)


def test_what_is_usual_does_not_reach_moto(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = list[str]()
    answer = quick_dynamodb._answer

    def answer_of_moto(own: Any, request: Any, target: str) -> Any:
        reached.append(target)
        return answer(own, request, target)

    monkeypatch.setattr(quick_dynamodb, "_answer", answer_of_moto)

    answers_about_rows(plain_twin)

    # The table is made, and what is refused or odd is refused in moto's words.
    kinds = Counter(target.rpartition(".")[2] for target in reached)
    odd = {"Query": 4, "Scan": 1, "GetItem": 1, "BatchGetItem": 1, "BatchWriteItem": 1}
    odd |= {"PutItem": 5, "DeleteItem": 1, "UpdateItem": 2, "TransactWriteItems": 3}
    assert kinds == {"CreateTable": 1, **odd}


def test_what_pynamodb_asks_again_goes_past_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = list[str]()
    call = quick_botocore._call

    def call_of_botocore(own: Any, operation_name: str, asked: Any) -> Any:
        gone.append(operation_name)
        return call(own, operation_name, asked)

    monkeypatch.setattr(quick_botocore, "_call", call_of_botocore)
    with plain_twin():
        _create_rows(boto3.client("dynamodb", region_name="eu-central-1"))
        gone.clear()
        connection: Any = Connection(region="eu-central-1")

        told = [connection.dispatch("GetItem", {"TableName": "Rows", "Key": key}) for key in (START, FREE, START)]

    assert gone == ["GetItem"]
    assert [answer.get("Item") for answer in told] == [None] * 3
