"""How a work tree is changed: by nothing, by an agent program, by a model."""
