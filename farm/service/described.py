"""Service step, the description: the OpenAPI schema of the service, and the same for a person to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

#: Addresses that answer without a token.
OPEN = ("/health", "/health/live", "/health/ready", "/health/serving")

_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token that `farm keys add NAME` made, or that of `farm serve`.",
    },
    "password": {
        "type": "http",
        "scheme": "basic",
        "description": "The same token as a password, for clients that take an address with a password only.",
    },
}
_METHODS = ("get", "post")


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """What one address does; its parameters and fields are names with their types and meanings."""

    method: str
    path: str
    summary: str
    fields: tuple[tuple[str, str, str], ...]
    answers: tuple[tuple[str, str], ...]


def describe(app: FastAPI) -> None:
    """Have an application give its schema with the ways to show a token."""

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _schema(app)
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]


def _schema(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(title=app.title, version=app.version, routes=app.routes)
    made.setdefault("components", {})["securitySchemes"] = _SCHEMES
    made["security"] = [{name: []} for name in _SCHEMES]
    for path in OPEN:
        for operation in made["paths"][path].values():
            operation["security"] = []
    return made


def operations(schema: Mapping[str, Any]) -> list[Operation]:
    """Return what a schema says of its addresses, in their order."""
    return [
        _operation(schema, method, path, said)
        for path, methods in schema["paths"].items()
        for method, said in methods.items()
        if method in _METHODS
    ]


def _operation(schema: Mapping[str, Any], method: str, path: str, said: Mapping[str, Any]) -> Operation:
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = [
        (each["name"], f"{_type(each.get('schema', {}))}, in the {each['in']}", each.get("description", ""))
        for each in said.get("parameters", ())
    ]
    fields += [
        (name, _type(each), each.get("description", ""))
        for name, each in _resolved(schema, body).get("properties", {}).items()
    ]
    answers = tuple((status, each["description"]) for status, each in said["responses"].items())
    summary = said.get("description") or said.get("summary", "")
    return Operation(method=method.upper(), path=path, summary=summary, fields=tuple(fields), answers=answers)


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    name = part.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = schema["components"]["schemas"][name] if name else part
    return found


def _type(part: Mapping[str, Any]) -> str:
    """Return a type in short, as in ``list of Item or null``."""
    if "anyOf" in part:
        return " or ".join(_type(each) for each in part["anyOf"])
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    if part.get("type") == "array":
        return f"list of {_type(part.get('items', {}))}"
    return str(part.get("type", "any JSON"))
