# SPDX-License-Identifier: MIT
"""Signatures with types for autodoc, which doesn't read the stub of an extension.

inspect.signature() has the parameters of the extension's functions and no types; of an
attribute nothing is known. The stub has both.
"""

import ast
from pathlib import Path

from sphinx.ext.autodoc import AttributeDocumenter

STUB = Path(__file__).resolve().parents[2] / "python/tshare/_tshare.pyi"
Signature = tuple[str, str]


class Spelled(ast.NodeTransformer):
    """Write types in full where the stub has names of its own for them."""

    def __init__(self, tree: ast.Module) -> None:
        self.names = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and not isinstance(node.value, ast.Call)
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        return self.visit(self.names[node.id]) if node.id in self.names else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        return ast.Name(node.attr) if ast.unparse(node.value) == "builtins" else node


class Stub:
    def __init__(self, path: Path) -> None:
        self.source = path.read_text(encoding="utf-8")
        tree = ast.parse(self.source)
        self.spelled = Spelled(tree)
        self.signatures: dict[str, list[Signature]] = {}
        self.types: dict[str, str] = {}
        self.read(tree.body, "tshare.")

    def type(self, annotation: ast.expr | None) -> str:
        return ast.unparse(self.spelled.visit(annotation)) if annotation else ""

    def read(self, body: list[ast.stmt], path: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.read(node.body, f"{path}{node.name}.")
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.types[path + node.target.id] = self.type(node.annotation)
            elif isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                if f"{node.name}.setter" in decorators:
                    continue
                if "property" in decorators:
                    self.types[path + node.name] = self.type(node.returns)
                else:
                    in_class = path != "tshare." and "staticmethod" not in decorators
                    signature = (self.parameters(node.args, in_class), self.type(node.returns))
                    self.signatures.setdefault(path + node.name, []).append(signature)

    def parameters(self, arguments: ast.arguments, in_class: bool) -> str:
        if in_class:
            (arguments.posonlyargs or arguments.args).pop(0)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in every:
            if argument.annotation:
                argument.annotation = self.spelled.visit(argument.annotation)
        # As they are written: 0o600, not 384.
        for defaults in (arguments.defaults, arguments.kw_defaults):
            for place, default in enumerate(defaults):
                if default:
                    defaults[place] = ast.Name(ast.get_source_segment(self.source, default))
        return f"({ast.unparse(arguments)})"


stub = Stub(STUB)


def sign(app, what, name, thing, options, signature, returns):
    """Give autodoc the signatures of an extension's function: of each overload, one a line."""
    overloads = stub.signatures.get(name)
    if not overloads:
        return None
    lines = [f"{parameters} -> {returns}" for parameters, returns in overloads[:-1]]
    return "\n".join([*lines, overloads[-1][0]]), overloads[-1][1]


class TypedAttribute(AttributeDocumenter):
    def add_directive_header(self, sig: str) -> None:
        super().add_directive_header(sig)
        if self.fullname in stub.types:
            self.add_line(f"   :type: {stub.types[self.fullname]}", self.get_sourcename())


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.add_autodocumenter(TypedAttribute, override=True)
    app.connect("autodoc-process-signature", sign)
    return {"parallel_read_safe": True}
