"""rustlite: a small Rust-like language compiled to WebAssembly, with switchable seeded defects.

    source ── lex, parse ──► tree ── lower ──► nodes ── check ──► typed nodes ── codegen ──► WAT ──► wasm
              parse.py               lower.py           infer.py                 codegen.py  wasmtime

`make setup` and a build of the package generate the parser `_parser.py` from `grammar.lark` (`generate.py`):
no grammar is compiled at run time and lark itself is not imported. Every stage reports a `CompileError` with
a code of the platform's registry (families 0001 lexer, 0100 parser, 0200 types) and a span in BYTES. Anything
else that escapes a stage is a panic, exit 101.

Differences from Rust on purpose: arithmetic wraps; a hex or binary literal is a bit pattern (`0xFFFF_FFFF` is
-1 as i32); char literals are i32; a const may only use consts above it; block comments do not nest.
"""
