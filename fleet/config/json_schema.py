"""The JSON Schema of a configuration file, for editors; the strings below the keys are its descriptions."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from fleet.config.section import Section


def schema(model: type[Section]) -> dict[str, Any]:
    """The schema of one file; every key has its description."""
    made = model.model_json_schema(schema_generator=_Described)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


class _Described(GenerateJsonSchema):
    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        for key, text in _descriptions(schema["cls"]).items():
            made["properties"][key]["description"] = text
        return made


def _descriptions(model: type[Any]) -> dict[str, str]:
    """The string below each key, by key; read from the source, which pydantic would do at every start."""
    found: dict[str, str] = {}
    for table in reversed(model.__mro__[: model.__mro__.index(Section)]):
        (node,) = ast.parse(dedent(inspect.getsource(table))).body
        for key, below in pairwise(node.body if isinstance(node, ast.ClassDef) else ()):
            match key, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found
