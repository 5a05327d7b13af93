"""moto made quicker gives the answers of moto as it comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.quick_moto import quicken_moto

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


def answers() -> list[str]:
    """Of moto to every update and every condition, twice, in the order of the table; and the item after each."""
    told = []
    with mock_aws():
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
    quicken_moto()
    root = Path(__file__).resolve().parents[2]
    script = "import json; from tests.unit.test_quick_moto import answers; print(json.dumps(answers()))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root, env=environment)

    assert answers() == json.loads(asked.stdout)
