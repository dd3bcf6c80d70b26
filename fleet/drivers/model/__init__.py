"""The driver that asks a model. Only `factory` may be imported without the extra `model`."""
