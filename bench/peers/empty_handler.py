"""The least a Lambda function can be: what the emulator, the runtime and the interpreter take by themselves."""

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer every event alike."""
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": '{"status":"ok"}'}
