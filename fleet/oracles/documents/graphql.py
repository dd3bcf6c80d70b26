"""A GraphQL schema in the form of OpenAPI: each field of its queries and mutations is an operation. Pure.

The schema is a stranger's answer to an introspection query. A query's field with one argument that it needs
has it in its path, `/order/{id}`; all other arguments are a body. `x-graphql` holds the document that asks
for each field, for `qa_account`. A field of an object that is asked for by name is an operation as well:
`/user.orders/{name}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.oracles.texts import parsed

_LEAF = "kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } }"
INTROSPECTION = (
    "query { __schema { queryType { name } mutationType { name } types { kind name"
    f" fields {{ name description args {{ name defaultValue type {{ {_LEAF} }} }} type {{ {_LEAF} }} }}"
    f" inputFields {{ name type {{ {_LEAF} }} }} enumValues {{ name }} }} }} }}"
)
DOCUMENTS, PROBES = "x-graphql", "x-graphql-probes"
MOST, WIDE, DEEP = 120, 24, 4
"""Operations of a schema, fields of one answer, levels of an input."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}", re.ASCII)
_TYPE = re.compile(r"[\[\]!A-Za-z0-9_]{1,120}", re.ASCII)
_SCALARS: Mapping[str, Mapping[str, Any]] = {
    "ID": {"type": "string", "maxLength": 14},
    "String": {"type": "string"},
    "Int": {"type": "integer"},
    "Float": {"type": "number"},
    "Boolean": {"type": "boolean"},
}
_OWN = re.compile(r"(?i)me|self|viewer|who_?am_?i|current_?user|profile")
"""A field that is the account that asks."""
_FORMATS = {
    "datetime": "date-time",
    "date": "date",
    "time": "time",
    "uuid": "uuid",
    "url": "uri",
    "email": "email",
}
Table = Mapping[str, Any]


def is_introspection(document: object) -> bool:
    """Whether a document is the answer to an introspection query."""
    return bool(_schema(document))


def speaks_graphql(text: str) -> bool:
    """Whether an answer to `{__typename}` is that of a GraphQL API: the name of a type, or its errors."""
    read = parsed(text)
    errors = read.get("errors") if isinstance(read, dict) else None
    return names_type(text) or any("message" in one for one in _tables(errors))


def names_type(text: str) -> bool:
    """Whether an answer to `{__typename}` has it: the query was done, by whatever method it came."""
    read = parsed(text)
    data = read.get("data") if isinstance(read, dict) else None
    return isinstance(data, dict) and isinstance(data.get("__typename"), str)


def as_openapi(document: object) -> dict[str, Any]:
    """The description that a schema amounts to."""
    schema = _schema(document)
    types = {str(one.get("name")): one for one in _tables(schema.get("types"))}
    paths, documents = dict[str, Any](), dict[str, str]()
    for root, kind in (("queryType", "query"), ("mutationType", "mutation")):
        top = schema.get(root)
        name = str(top.get("name")) if isinstance(top, dict) else ""
        for field in _tables(types.get(name, {}).get("fields")):
            if len(paths) < MOST and _NAME.fullmatch(str(field.get("name"))):
                for path, operation, text in _operations(field, kind, types):
                    paths[path] = operation
                    documents[path.strip("/").partition("/")[0]] = text
    return {
        PROBES: _probes(schema, types),
        "openapi": "3.1.0",
        "info": {"title": "GraphQL", "version": "1"},
        "paths": paths,
        DOCUMENTS: documents,
    }


def _probes(schema: Table, types: Mapping[str, Table]) -> dict[str, str]:
    """A call of a field that finds nothing (`call`), and the names of objects below it for as deep as they go
    round (`below`)."""
    top = schema.get("queryType")
    fields = _tables(types.get(str(top.get("name")) if isinstance(top, dict) else "", {}).get("fields"))
    for field in fields:
        _, inner, must = _spelled(field.get("type"))
        needed = [one for one in _tables(field.get("args")) if _spelled(one.get("type"))[2]]
        if must or len(needed) != 1 or types.get(inner, {}).get("kind") != "OBJECT":
            continue
        kind, leaves = _spelled(needed[0].get("type"))[0], list(_leaves(inner, types))
        if kind in ("ID!", "String!", "Int!") and leaves and _NAME.fullmatch(str(field.get("name"))):
            value = "0" if kind == "Int!" else '"qa-none"'
            call = f"{field['name']}({needed[0]['name']}: {value})"
            return {"call": call, "leaf": leaves[0], "below": " ".join(_round(inner, types))}
    return {}


def _round(name: str, types: Mapping[str, Table]) -> list[str]:
    """Fields that lead from an object back to it."""
    waiting: list[tuple[str, list[str]]] = [(name, [])]
    while waiting:
        at, way = waiting.pop(0)
        for field, of in list(_objects(at, types))[:DEEP] if len(way) < DEEP else ():
            if of == name:
                return [*way, field]
            waiting.append((of, [*way, field]))
    return []


def _schema(document: object) -> Table:
    data = document.get("data", document) if isinstance(document, dict) else None
    found = data.get("__schema") if isinstance(data, dict) else None
    return found if isinstance(found, dict) and isinstance(found.get("types"), list) else {}


def _tables(value: object) -> list[Table]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _spelled(of: object, depth: int = 6) -> tuple[str, str, bool]:
    """A type as it is written, the type inside, and whether a value is needed."""
    if not isinstance(of, dict) or depth == 0:
        return "String", "String", False
    match of.get("kind"):
        case "NON_NULL":
            written, inner, _ = _spelled(of.get("ofType"), depth - 1)
            return f"{written}!", inner, True
        case "LIST":
            written, inner, _ = _spelled(of.get("ofType"), depth - 1)
            return f"[{written}]", inner, False
    return str(of.get("name")), str(of.get("name")), False


def _input(of: object, types: Mapping[str, Table], left: int = DEEP) -> dict[str, Any]:
    """The schema of an argument."""
    written, inner, _ = _spelled(of)
    if "[" in written:
        return {"type": "array", "items": _named_input(inner, types, left)}
    return _named_input(inner, types, left)


def _named_input(name: str, types: Mapping[str, Table], left: int) -> dict[str, Any]:
    known = types.get(name, {})
    if name in _SCALARS:
        return dict(_SCALARS[name])
    if known.get("kind") == "ENUM":
        return {"type": "string", "enum": [str(one.get("name")) for one in _tables(known.get("enumValues"))]}
    if known.get("kind") == "INPUT_OBJECT" and left:
        fields = _tables(known.get("inputFields"))[:WIDE]
        return {
            "type": "object",
            "properties": {str(one.get("name")): _input(one.get("type"), types, left - 1) for one in fields},
            "required": [str(one.get("name")) for one in fields if _spelled(one.get("type"))[2]],
        }
    form = _FORMATS.get(name.lower())
    return {"type": "string", "format": form} if form else {"type": "object"}


def _usual(argument: Table) -> dict[str, Any]:
    """The default value of an argument, where it is a plain one."""
    value = parsed(f"[{argument.get('defaultValue')}]")
    return {"default": value[0]} if isinstance(value, list) and isinstance(value[0], str | int) else {}


def _leaves(name: str, types: Mapping[str, Table]) -> dict[str, dict[str, Any]]:
    """The fields of an object that are values, with their schemas."""
    found: dict[str, dict[str, Any]] = {}
    for field in _tables(types.get(name, {}).get("fields"))[: 2 * WIDE]:
        _, inner, _ = _spelled(field.get("type"))
        kind = types.get(inner, {}).get("kind", "SCALAR")
        needs = any(_spelled(one.get("type"))[2] for one in _tables(field.get("args")))
        if kind in ("SCALAR", "ENUM") and not needs and _NAME.fullmatch(str(field.get("name"))):
            said = field.get("description")
            described = {"description": said[:400]} if isinstance(said, str) else {}
            found[str(field["name"])] = _input(field.get("type"), types, 0) | described
    return dict(list(found.items())[:WIDE])


def _objects(name: str, types: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """The fields of an object that are objects, with their types."""
    for field in _tables(types.get(name, {}).get("fields"))[: 2 * WIDE]:
        _, inner, _ = _spelled(field.get("type"))
        needs = any(_spelled(one.get("type"))[2] for one in _tables(field.get("args")))
        if (
            types.get(inner, {}).get("kind") == "OBJECT"
            and not needs
            and _NAME.fullmatch(str(field.get("name")))
        ):
            yield str(field["name"]), inner


def _known_by_id(name: str, types: Mapping[str, Table]) -> Iterator[str]:
    """The fields of an object that are one object with an id."""
    single = {
        str(one.get("name"))
        for one in _tables(types.get(name, {}).get("fields"))
        if "[" not in _spelled(one.get("type"))[0]
    }
    return (field for field, of in _objects(name, types) if field in single and "id" in _leaves(of, types))


def _selected(name: str, types: Mapping[str, Table]) -> str:
    """What is asked of an object: its values; of one that only holds others, theirs as well."""
    leaves = list(_leaves(name, types))
    inner = [
        f"{field} {{ {' '.join(below)} }}"
        for field, of in (_objects(name, types) if len(leaves) < 2 else ())
        if (below := list(_leaves(of, types)))
    ]
    return " ".join([*leaves, *inner[:DEEP]])


def _operations(
    field: Table, kind: str, types: Mapping[str, Table]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The operations of one field: path, description, document."""
    name, arguments = str(field["name"]), _tables(field.get("args"))
    arguments = [one for one in arguments if _NAME.fullmatch(str(one.get("name")))][:WIDE]
    spelled = {str(one["name"]): _spelled(one.get("type")) for one in arguments}
    if any(not _TYPE.fullmatch(written) for written, _, _ in spelled.values()):
        return
    needed = [one for one, (_, _, must) in spelled.items() if must]
    keyed = kind == "query" and len(needed) == 1 and spelled[needed[0]][0] in ("ID!", "String!", "Int!")
    first = needed[:1] if keyed else []
    ordered = [*first, *(one for one in spelled if one not in first)]
    given = ", ".join(f"${one}: {spelled[one][0]}" for one in ordered)
    passed = ", ".join(f"{one}: ${one}" for one in ordered)
    _, inner, _ = _spelled(field.get("type"))
    objects = types.get(inner, {}).get("kind") in ("OBJECT", "INTERFACE")
    selected = _selected(inner, types) if objects else ""
    beside = list(_known_by_id(inner, types)) if objects and _OWN.fullmatch(name) else []
    selected = " ".join((selected, *(f"{one} {{ id }}" for one in beside)))
    if types.get(inner, {}).get("kind") == "UNION" or (objects and not selected):
        selected = "__typename"
    head = f"{kind}{f'({given})' if given else ''}"
    call = f"{name}{f'({passed})' if passed else ''}"
    schemas = {str(one["name"]): _input(one.get("type"), types) | _usual(one) for one in arguments}
    place = f"/{{{first[0]}}}" if first else ""
    method = "get" if kind == "query" else "post"
    operation = _operation(
        field, {one: schemas[one] for one in ordered if one not in first}, needed, schemas, first
    )
    answers = _leaves(inner, types) if objects else {}
    answers |= {one: {"type": "object", "properties": {"id": {"type": "string"}}} for one in beside}
    operation["responses"] = {"200": {"content": {"application/json": {"schema": {"properties": answers}}}}}
    ends = f" {{ {selected} }}" if selected else ""
    yield f"/{name}{place}", {method: operation}, f"{head} {{ {call}{ends} }}"
    for below, of in list(_objects(inner, types))[:DEEP] if objects and (keyed or not needed) else ():
        leaves = _leaves(of, types)
        if leaves and kind == "query":
            answer = {
                "200": {
                    "content": {
                        "application/json": {
                            "schema": {"properties": {below: {"type": "object", "properties": leaves}}}
                        }
                    }
                }
            }
            yield (
                f"/{name}.{below}{place}",
                {method: {**operation, "responses": answer}},
                f"{head} {{ {call} {{ {below} {{ {' '.join(leaves)} }} }} }}",
            )


def _operation(
    field: Table,
    body: Mapping[str, Any],
    needed: Sequence[str],
    schemas: Mapping[str, Any],
    first: Sequence[str],
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": field["name"],
        "summary": str(field.get("description") or "")[:400],
        "parameters": [
            {"name": one, "in": "path", "required": True, "schema": schemas[one]} for one in first
        ],
    }
    if body:
        required = [one for one in needed if one in body]
        schema = {"type": "object", "properties": dict(body), "required": required}
        made["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return made
