"""The type stub, the compiled module and the reference offer the same names and parameters."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pillion_ranker
import pytest
from pillion_ranker import _native
from pillion_ranker.reference import ReferenceHits, ReferenceTable

STUB = ast.parse((Path(pillion_ranker.__file__).parent / "_native.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
# Every object has these; a stub needn't repeat them.
UNIVERSAL = {"__repr__", "__doc__", "__module__"}


def stub_parameters(function: ast.FunctionDef) -> list[tuple[str, str]]:
    arguments = function.args
    positional = [(one.arg, "positional") for one in arguments.args[1:]]
    return positional + [(one.arg, "keyword") for one in arguments.kwonlyargs]


def built_parameters(built: object) -> list[tuple[str, str]]:
    parameters = inspect.signature(built).parameters.values()  # type: ignore[arg-type]
    return [
        (one.name, "keyword" if one.kind is one.KEYWORD_ONLY else "positional")
        for one in parameters
        if one.name != "self"
    ]


def test_module_names() -> None:
    in_stub = set(CLASSES)
    for node in STUB.body:
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            in_stub.add(node.target.id)
        elif isinstance(node, ast.FunctionDef):
            in_stub.add(node.name)
    built = {name for name in vars(_native) if not name.startswith("__")}
    assert in_stub == built
    assert built <= set(pillion_ranker.__all__)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class_members(name: str) -> None:
    functions = [node for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)]
    built_names = set(vars(getattr(_native, name))) - UNIVERSAL
    assert {node.name for node in functions} == built_names
    for node in functions:
        built = vars(getattr(_native, name)).get(node.name)
        if isinstance(built, staticmethod):
            assert [one.id for one in node.decorator_list] == ["staticmethod"]  # type: ignore[attr-defined]
            names = [one.arg for one in node.args.args]
            assert names == [name for name, _ in built_parameters(built.__func__)], node.name
        elif node.decorator_list:
            assert inspect.isdatadescriptor(built), node.name
        elif node.name == "__new__":
            assert stub_parameters(node) == built_parameters(getattr(_native, name))
        elif not node.name.startswith("__"):
            assert stub_parameters(node) == built_parameters(built), node.name


@pytest.mark.parametrize("name", ["Filter", "Profile", "Table"])
def test_defaults(name: str) -> None:
    owner = getattr(_native, name)
    for node in CLASSES[name].body:
        if not isinstance(node, ast.FunctionDef) or not node.args.kwonlyargs:
            continue
        built = inspect.signature(owner if node.name == "__new__" else getattr(owner, node.name))
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            parameter = built.parameters[argument.arg]
            assert (default is None) == (parameter.default is parameter.empty), argument.arg
            if isinstance(default, ast.Constant) and default.value is not ...:
                assert parameter.default == default.value, argument.arg


def test_the_reference_has_the_methods_of_the_table() -> None:
    for name, built in vars(_native.Table).items():
        if name.startswith(("__", "bench_")) or inspect.isdatadescriptor(built):
            continue
        assert built_parameters(getattr(ReferenceTable, name)) == built_parameters(built), name


def test_the_reference_has_the_members_of_hits() -> None:
    for name, built in vars(_native.Hits).items():
        if name.startswith("__"):
            continue
        if inspect.isdatadescriptor(built):
            assert name in ReferenceHits.__dataclass_fields__
        else:
            assert built_parameters(getattr(ReferenceHits, name)) == built_parameters(built), name


def run_with_path(path: str) -> subprocess.CompletedProcess[str]:
    code = "import pillion_ranker; pillion_ranker.Table(2); print(pillion_ranker.cpu_path())"
    environment = os.environ | {"PILLION_RANKER_SIMD": path}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_a_cpu_path_can_be_forced() -> None:
    assert run_with_path("scalar").stdout == "scalar\n"


def test_an_unknown_cpu_path_is_an_error_that_lists_the_others() -> None:
    run = run_with_path("fastest")
    assert run.returncode != 0
    assert 'ValueError: PILLION_RANKER_SIMD: unknown path "fastest"; allowed here:' in run.stderr
    assert "scalar" in run.stderr
