"""AWS clients: the only users of boto3 outside the twin. Outside errors are sorted here, once."""
