# SPDX-License-Identifier: MIT
"""The docstrings and signatures of the extension are those of its stub."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import tshare
from tshare import _tshare

STUB = Path(_tshare.__file__).with_name("_tshare.pyi")
CLASSES = (
    *("DType", "Tensor", "CudaTensor", "Pin", "StreamWait", "Watcher"),
    *("Region", "Frame", "Stream", "Entry", "Pool"),
)


def body_of(name):
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    if not name:
        return tree.body
    return next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def stub_docstrings():
    """Yield (path, docstring) of all objects that have one; a field's stands behind it."""
    for class_name in ("", *CLASSES, "RegionInfo", "Limits", "StreamSeat", "PoolInfo"):
        field = None
        for node in body_of(class_name):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                yield ".".join(filter(None, (class_name, node.name))), ast.get_docstring(node)
            elif isinstance(node, ast.Expr) and field and isinstance(node.value, ast.Constant):
                yield f"{class_name}.{field}", node.value.value
            field = node.target.id if isinstance(node, ast.AnnAssign) else None


def public():
    """Return the paths of all public objects of the extension."""
    for name in sorted(set(tshare.__all__) & set(vars(_tshare))):
        yield name
        thing = getattr(tshare, name)
        if isinstance(thing, type):
            yield from (f"{name}.{attr}" for attr in vars(thing) if not attr.startswith("_"))


def find(path):
    thing = _tshare
    for name in path.split("."):
        thing = inspect.getattr_static(thing, name)
    return thing


DOCSTRINGS = dict(stub_docstrings())


@pytest.mark.parametrize("path", list(public()))
def test_public_objects_have_a_docstring_in_the_stub(path):
    assert path in DOCSTRINGS


@pytest.mark.parametrize("path", DOCSTRINGS)
def test_docstring_is_the_stub_s(path):
    assert find(path).__doc__ == DOCSTRINGS[path]


def functions():
    for class_name in ("", *CLASSES):
        found = {}
        for node in body_of(class_name):
            if isinstance(node, ast.FunctionDef) and not any(
                re.fullmatch(r"property|\w+\.setter", ast.unparse(d)) for d in node.decorator_list
            ):
                found.setdefault(node.name, []).append(node)
        for name, nodes in found.items():
            path = ".".join(filter(None, (class_name, name)))
            if path in DOCSTRINGS:
                yield pytest.param(path, nodes[-1].args, id=path)


@pytest.mark.parametrize(("path", "arguments"), list(functions()))
def test_signature_has_the_stub_s_parameters(path, arguments):
    thing = _tshare
    for name in path.split("."):
        thing = getattr(thing, name)
    kinds = {kind: [] for kind in inspect._ParameterKind}
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name != "self":
            kinds[parameter.kind].append(parameter.name)
    expected = [
        [a.arg for a in group if a.arg not in ("self", "cls")]
        for group in (arguments.posonlyargs, arguments.args, arguments.kwonlyargs)
    ]
    assert expected == [
        kinds[inspect.Parameter.POSITIONAL_ONLY],
        kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD],
        kinds[inspect.Parameter.KEYWORD_ONLY],
    ]


def test_signature_has_the_stub_s_defaults():
    parameters = inspect.signature(tshare.create).parameters
    assert parameters["name"].default is None
    assert parameters["dtype"].default == "uint8"
    assert parameters["mode"].default == 0o600
    assert inspect.signature(tshare.Region.get).parameters["default"].default is None


@pytest.mark.parametrize("path", [path for path in DOCSTRINGS if ":param" in DOCSTRINGS[path]])
def test_docstring_describes_each_parameter_in_order(path):
    thing = _tshare
    for name in path.split("."):
        thing = getattr(thing, name)
    parameters = [name for name in inspect.signature(thing).parameters if name != "self"]
    assert re.findall(r"^:param (\w+):", DOCSTRINGS[path], flags=re.M) == parameters
