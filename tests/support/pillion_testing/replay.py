"""Replays a checklist of `tests/vectors/replay` over bare stubs; the README there says how."""

from __future__ import annotations

import re
import uuid
from functools import cache

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import schema_service_pb2
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub
from pillion_proto.memory.v1.schema_service_pb2_grpc import SchemaServiceStub

SECONDS = 30
_SCHEMA_CALLS = ("RegisterAttribute", "GetAttribute", "ListAttributes", "MigrateAttribute")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@cache
def message_type(name):
    """The generated class of a message."""
    return getattr(wire, name, None) or getattr(schema_service_pb2, name)


class Replay:
    """One run of one scenario against one server, in a partition of its own."""

    def __init__(self, channel, scenario):
        self._stubs = (MemoryServiceStub(channel), SchemaServiceStub(channel))
        self.partition = {"namespace": "replay", "tenant": f"{scenario['name']}-{uuid.uuid4()}"}
        self.known = {name: str(uuid.uuid4()) for name in scenario.get("ids", ())}

    def filled(self, template):
        """A template with what its symbols stand for."""
        if isinstance(template, dict):
            return {name: self.filled(part) for name, part in template.items()}
        if isinstance(template, list):
            return [self.filled(part) for part in template]
        if isinstance(template, str) and template.startswith("$"):
            return self.known[template[1:]]
        return template

    def call(self, name, request):
        """Make a call; return (answer as JSON, None) or (None, how it failed)."""
        body = json_format.ParseDict(
            {"partition": self.partition, **self.filled(request)}, message_type(f"{name}Request")()
        )
        stub = self._stubs[name in _SCHEMA_CALLS]
        try:
            answer = getattr(stub, name)(body, timeout=SECONDS)
        except grpc.RpcError as error:
            return None, failure_of(error)
        return json_format.MessageToDict(answer), None

    def step(self, step):
        """Do one step; return what is wrong with what came back, one line for each difference."""
        answer, failure = self.call(step["call"], step["request"])
        if "error" in step:
            if failure is None:
                return [f"expected {step['error']}, got an answer"]
            return self.differences(step["error"], failure, "error")
        if failure is not None:
            return [f"expected an answer, got {failure}"]
        for name, path in step.get("save", {}).items():
            self.known[name] = at_path(answer, path)
        return self.differences(step.get("answer", {}), answer, "answer")

    def differences(self, expected, found, path):
        """Where an answer is not as expected. What the expectation leaves out is not looked at."""
        if isinstance(expected, dict) and isinstance(found, dict):
            parts = [(f"{path}.{name}", part, found.get(name)) for name, part in expected.items()]
        elif isinstance(expected, list) and len(expected) == len(found or ()):
            pairs = enumerate(zip(expected, found or (), strict=True))
            parts = [(f"{path}[{place}]", part, item) for place, (part, item) in pairs]
        elif expected == "*":
            return [] if found is not None else [f"{path}: absent"]
        else:
            wanted = self.filled(expected)
            return [] if wanted == found else [f"{path}: expected {wanted!r}, is {found!r}"]
        return [line for part in parts for line in self.differences(part[1], part[2], part[0])]


def at_path(answer, path):
    """The part of an answer at a path such as ``results[0].id``."""
    for name, place in _STEP.findall(path):
        answer = answer[name] if name else answer[int(place)]
    return answer


def failure_of(error):
    """A failed call as JSON: status code, published reason, metadata, fields at fault."""
    status = rpc_status.from_call(error)
    failure = {"code": error.code().name}
    for detail in status.details if status is not None else ():
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            failure |= {"reason": info.reason, "metadata": dict(info.metadata)}
        elif detail.Unpack(bad):
            failure["fields"] = [one.field for one in bad.field_violations]
    return failure
