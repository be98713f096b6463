"""One way for every embedder to check the options that a person wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pillion.embedders.errors import EmbedderMisconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping


class EmbedderOptions(BaseModel):
    """Base of the built-ins' options: unknown names are refused, values don't change later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


OptionsT = TypeVar("OptionsT", bound=BaseModel)


def parse_options(
    model: type[OptionsT], options: Mapping[str, object], *, embedder: str
) -> OptionsT:
    """Validate `options`, or raise `EmbedderMisconfigured` that names each wrong one.

    The values themselves stay out of the message: one of them may be a secret in the wrong place.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or 'options'}: {problem['msg']}"
            for problem in error.errors(
                include_input=False, include_url=False, include_context=False
            )
        )
        raise EmbedderMisconfigured(f"options of embedder '{embedder}': {problems}") from None
