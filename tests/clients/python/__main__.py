"""A driver of a Python client as a program: `python -m tests.clients.python NAME ADDRESS`. It has members of groups.

It is for members that are killed, so it knows no other calls.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tests.clients.clients import CLIENTS
from tests.clients.driver import CannotDo, ClientError
from tests.clients.group_driver import Groups
from tests.clients.json_records import consumed_to_json


def _answer(groups: Groups, request: Mapping[str, Any]) -> Any:
    match request["call"]:
        case "groups.join":
            return groups.join(request["group"], request["topics"], request["settings"])
        case "groups.poll":
            records, assignment = groups.poll(request["member"])
            return {"records": [consumed_to_json(record) for record in records], "assignment": list(assignment)}
        case "groups.commit":
            return groups.commit(request["member"], wait=request["wait"])
        case other:
            raise CannotDo(f"{other} is not for members that are killed")


def main() -> None:
    """Answer line by line until stdin ends."""
    name, address = sys.argv[1:]
    driver = CLIENTS[name].connect(address)
    answer: dict[str, Any]
    for line in sys.stdin:
        try:
            answer = {"result": _answer(driver.groups, json.loads(line))}
        except CannotDo as reason:
            answer = {"cannot": str(reason)}
        except ClientError as error:
            answer = {"error": {"code": error.code, "text": str(error)}}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    driver.close()


if __name__ == "__main__":
    main()
