from typing import Any

class Token(str):
    type: str
    start_pos: int
    end_pos: int

class Meta:
    empty: bool
    start_pos: int
    end_pos: int

class Tree:
    data: str
    children: list[Any]
    @property
    def meta(self) -> Meta: ...
    def pretty(self) -> str: ...

class UnexpectedInput(Exception):
    pos_in_stream: int | None

class UnexpectedCharacters(UnexpectedInput): ...

class UnexpectedToken(UnexpectedInput):
    token: Token
    expected: set[str]

class Lark:
    def parse(self, text: str) -> Tree: ...

def Lark_StandAlone() -> Lark: ...
