"""Answers for methods of the contract that this server does not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.transport.capabilities import METHODS, PACKAGE, not_served

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion.transport.call import Call

ServicerT = TypeVar("ServicerT", bound=type)


def refuse_unserved(servicer: ServicerT) -> ServicerT:
    """Class decorator: unserved methods of the table refuse; served ones must be there.

    Raises:
        TypeError: The class and the table of `capabilities` disagree about a method.
    """
    service = servicer.__name__.replace("Servicer", "Service")
    prefix = f"/{PACKAGE}.{service}/"
    for path, method in METHODS.items():
        if not path.startswith(prefix):
            continue
        name = path.removeprefix(prefix)
        if method.served != (name in vars(servicer)):
            raise TypeError(f"{servicer.__name__}.{name}: METHODS says served={method.served}")
        if not method.served:
            setattr(servicer, name, _refusal(name, method.capability))
    return servicer


def _refusal(
    name: str, number: wire.Capability | None
) -> Callable[[object, object, Call], NoReturn]:
    capability = "" if number is None else wire.Capability.Name(number)

    def refuse(_servicer: object, _request: object, _call: Call) -> NoReturn:
        raise not_served(capability, f"this server does not serve {name} ({capability})")

    return refuse
