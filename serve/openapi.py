"""The description of the API for programs, written from the table of endpoints and from the records."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from kbtools.answering import records, results
from kbtools.serve.endpoints import ENDPOINTS, Endpoint
from kbtools.serve.parameters import Parameter
from kbtools.version import __version__

SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "count": {"type": "integer"},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "flag": {"type": "boolean"},
}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message"],
            "properties": {"kind": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
WITHOUT_RECORD: dict[str, dict[str, Any]] = {
    "Info": {"type": "object", "required": ["name", "counts", "pruners", "scorers", "subjects"]},
    "Neighbours": {
        "type": "object",
        "required": ["id", "neighbours"],
        "properties": {
            "id": {"type": "string"},
            "neighbours": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "name", "cosine"],
                    "properties": {
                        "id": {"type": "string"},
                        "name": {"type": ["string", "null"]},
                        "cosine": {"type": "number"},
                    },
                },
            },
        },
    },
    "Error": ERROR,
}
"""What the API gives that is no record of the library."""


def describe(server: str) -> dict[str, Any]:
    """Write the description; `server` is the path that the API stands under."""
    schemas = dict(WITHOUT_RECORD)
    for name in ("Result", "LookupResult", "LinkedText", "Entity", "Facts"):
        add_schema(getattr(results, name, None) or getattr(records, name), schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kbtools",
            "version": __version__,
            "description": "Questions, names, text and entities over a knowledge base.",
        },
        "servers": [{"url": server or "/"}],
        "paths": {
            endpoint.path: {method.lower(): operation(endpoint, method) for method in endpoint.parameters}
            for endpoint in ENDPOINTS
        },
        "components": {"schemas": schemas},
    }


def operation(endpoint: Endpoint, method: Any) -> dict[str, Any]:
    parameters = endpoint.parameters[method]
    record = {"$ref": f"#/components/schemas/{endpoint.record}"}
    content: dict[str, Any] = {"application/json": {"schema": record}}
    described: dict[str, Any] = {
        "operationId": endpoint.name if method == "GET" else f"{endpoint.name}_post",
        "summary": endpoint.summary,
    }
    if method == "GET":
        described["parameters"] = [
            {
                "name": parameter.name,
                "in": "path" if f"{{{parameter.name}}}" in endpoint.path else "query",
                "required": parameter.required,
                "description": parameter.help,
                "schema": parameter_schema(parameter),
            }
            for parameter in parameters
        ]
    else:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body(parameters)}}}
        if endpoint.many:
            content["application/jsonl"] = {"schema": record}
    error = {"description": "What is wrong.", "content": {"application/json": {"schema": schema_reference("Error")}}}
    described["responses"] = {"200": {"description": endpoint.summary, "content": content}, "default": error}
    return described


def body(parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    required = [parameter.name for parameter in parameters if parameter.required]
    described = {
        parameter.name: parameter_schema(parameter) | {"description": parameter.help} for parameter in parameters
    }
    return {"type": "object", "additionalProperties": False, "required": required, "properties": described}


def parameter_schema(parameter: Parameter) -> dict[str, Any]:
    schema = dict(KINDS[parameter.kind])
    match parameter.kind:
        case "count":
            schema |= {"minimum": parameter.least, "maximum": parameter.most}
        case "text":
            schema |= {"maxLength": parameter.longest}
        case "texts":
            schema |= {"maxItems": parameter.most}
    return schema


def schema_reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def add_schema(record: Any, schemas: dict[str, dict[str, Any]]) -> None:
    """Describe a record, and those that it holds."""
    if record.__name__ in schemas:
        return
    hints = get_type_hints(record)
    described: dict[str, Any] = {"type": "object"}
    schemas[record.__name__] = described
    properties = {field.name: value_schema(hints[field.name], schemas) for field in fields(record)}
    if record is results.Result:
        properties = {"json_version": {"type": "integer"}} | properties
    described["properties"] = properties
    described["required"] = [name for name in properties if name not in results.UNLESS_ASKED]


def value_schema(hint: Any, schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Describe the values of a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        add_schema(hint, schemas)
        return schema_reference(hint.__name__)  # type: ignore[union-attr]
    if origin in (UnionType, Union):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return {"anyOf": [value_schema(inner, schemas), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": value_schema(arguments[0], schemas)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": value_schema(arguments[1], schemas)}
    return {"type": SCALARS[hint]}
