"""Find a plug-in's factory among the installed packages. The built-ins are found the same way."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points


class PluginError(Exception):
    """No plug-in of that name, more than one, or it cannot be imported."""


def installed(group: str) -> dict[str, EntryPoint]:
    """The plug-ins of `group` by name.

    The same target announced twice (an editable install beside a wheel) is one plug-in. Two
    targets under one name are refused: which of them wins would depend on the order of installs.

    Raises:
        PluginError: Two plug-ins share a name.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginError(
                f"two plug-ins of group {group} are called '{point.name}': "
                f"{other.value} and {point.value}; uninstall one"
            )
    return found


def load_factory(group: str, name: str) -> object:
    """Import the factory of plug-in `name`. The caller checks what it makes.

    Raises:
        PluginError: Unknown name, or the import fails.
    """
    points = installed(group)
    if name not in points:
        known = ", ".join(sorted(points)) or "none is installed"
        raise PluginError(f"no plug-in '{name}' in group {group}; known: {known}")
    try:
        factory: object = points[name].load()
    except (ImportError, AttributeError) as error:
        raise PluginError(f"plug-in '{name}' of group {group} cannot be loaded: {error}") from error
    return factory
