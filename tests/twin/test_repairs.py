"""What the twin changes in moto's DynamoDB makes it quicker and nothing else: the same answers, the same roll-back."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.fixtures_twin import REGION, Twin


@pytest.fixture
def dynamodb(twin: Twin) -> Any:
    """A client on one table with a sort key and a sparse index, holding three items."""
    client = boto3.client("dynamodb", region_name=REGION)
    client.create_table(
        TableName="Items",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "work", "AttributeType": "S"},
            {"AttributeName": "due", "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[
            {
                "IndexName": "WorkIndex",
                "KeySchema": [{"AttributeName": "work", "KeyType": "HASH"}, {"AttributeName": "due", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    for number in range(3):
        client.put_item(
            TableName="Items", Item=key("a", number) | {"work": {"S": "GRANT"}, "due": {"N": str(10 - number)}, "v": {"N": "1"}}
        )
    client.put_item(TableName="Items", Item=key("b", 1) | {"work": {"S": "GRANT"}})
    return client


def key(pk: str, sk: int) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}}


def work(client: Any, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.query(
        TableName="Items",
        IndexName="WorkIndex",
        KeyConditionExpression="#w = :w",
        ExpressionAttributeNames={"#w": "work"},
        ExpressionAttributeValues={":w": {"S": "GRANT"}},
        **more,
    )
    return answer


def test_a_cancelled_transaction_leaves_every_item_as_it_was(dynamodb: Any) -> None:
    before = dynamodb.scan(TableName="Items")["Items"]
    with pytest.raises(ClientError) as cancelled:
        dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": "Items", "Item": key("new", 1)}},
                {
                    "Update": {
                        "TableName": "Items",
                        "Key": key("a", 0),
                        "UpdateExpression": "SET v = :two",
                        "ExpressionAttributeValues": {":two": {"N": "2"}},
                    }
                },
                {"Delete": {"TableName": "Items", "Key": key("a", 1)}},
                {
                    "ConditionCheck": {
                        "TableName": "Items",
                        "Key": key("a", 2),
                        "ConditionExpression": "v = :nine",
                        "ExpressionAttributeValues": {":nine": {"N": "9"}},
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
            ]
        )
    reasons: Any = cancelled.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "None", "None", "ConditionalCheckFailed"]
    assert reasons[3]["Item"]["v"] == {"N": "1"}
    assert dynamodb.scan(TableName="Items")["Items"] == before
    assert work(dynamodb)["Count"] == 3


def test_a_transaction_that_holds_takes_effect_whole(dynamodb: Any) -> None:
    dynamodb.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": "Items", "Item": key("new", 1)}},
            {"Delete": {"TableName": "Items", "Key": key("a", 1), "ConditionExpression": "attribute_exists(pk)"}},
        ]
    )
    left = {(item["pk"]["S"], item["sk"]["N"]) for item in dynamodb.scan(TableName="Items")["Items"]}
    assert left == {("a", "0"), ("a", "2"), ("b", "1"), ("new", "1")}


def test_an_index_is_sparse_sorted_by_number_and_paged(dynamodb: Any) -> None:
    assert [item["due"]["N"] for item in work(dynamodb)["Items"]] == ["8", "9", "10"]
    first = work(dynamodb, Limit=2, ScanIndexForward=False)
    rest = work(dynamodb, Limit=2, ScanIndexForward=False, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert [item["due"]["N"] for page in (first, rest) for item in page["Items"]] == ["10", "9", "8"]
    dynamodb.update_item(TableName="Items", Key=key("a", 0), UpdateExpression="REMOVE #w, due", ExpressionAttributeNames={"#w": "work"})
    assert [item["due"]["N"] for item in work(dynamodb)["Items"]] == ["8", "9"]


def test_a_query_by_key_sees_its_partition_alone(dynamodb: Any) -> None:
    found = dynamodb.query(
        TableName="Items",
        KeyConditionExpression="pk = :p AND sk BETWEEN :low AND :high",
        ExpressionAttributeValues={":p": {"S": "a"}, ":low": {"N": "1"}, ":high": {"N": "2"}},
    )
    assert [item["sk"]["N"] for item in found["Items"]] == ["1", "2"]
    nobody = dynamodb.query(TableName="Items", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "nobody"}})
    assert nobody["Items"] == []


def test_values_of_every_type_come_back_as_they_went(dynamodb: Any) -> None:
    item = key("types", 1) | {
        "text": {"S": "ü€"},
        "flag": {"BOOL": False},
        "nothing": {"NULL": True},
        "seal": {"B": b"\x00\xff"},
        "names": {"SS": ["a", "b"]},
        "sums": {"NS": ["1", "2.5"]},
        "seals": {"BS": [b"\x01"]},
        "tree": {"M": {"list": {"L": [{"N": "1"}, {"M": {"seal": {"B": b"\x02"}}}]}, "empty": {"M": {}}}},
    }
    dynamodb.put_item(TableName="Items", Item=item)
    assert dynamodb.get_item(TableName="Items", Key=key("types", 1))["Item"] == item
