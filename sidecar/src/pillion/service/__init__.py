"""The use cases, one module a verb: gather, decide by the domain, act through ports."""

from __future__ import annotations

from pillion.service.assemble import ServiceSettings, UseCases, assemble

__all__ = ["ServiceSettings", "UseCases", "assemble"]
