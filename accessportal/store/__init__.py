"""The ground under every DynamoDB table: base item, keys, conditional transactions, signed cursors."""
