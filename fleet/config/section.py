"""The base of every table of a configuration file."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$")]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]


class Section(BaseModel):
    """A frozen table of a configuration file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
