# SPDX-License-Identifier: MIT
"""Make a header of the docstrings in a stub, for the C file that implements it.

usage: docstrings.py STUB HEADER

Each class, attribute, method and function of the stub that has a docstring becomes
a macro with its text: DOC_Tensor for a class, DOC_Tensor_close for what is in it,
DOC_create for a function of the module. Of functions the text begins with the
signature in the form from which inspect.signature() makes one again.

A field of a named tuple has its docstring behind it, as a string of its own. Of
overloads the first has the docstring, and a parameter that only the last has may be
left out, so that its default is None.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

Function = ast.FunctionDef


def decorators(function: Function) -> set[str]:
    return {ast.unparse(decorator) for decorator in function.decorator_list}


def signature(source: str, overloads: list[Function], receiver: str) -> str:
    """The parameters as in the stub, but without annotations.

    The receiver is what inspect takes for self: it leaves out a name that has a $.
    """
    arguments = overloads[-1].args
    required = {a.arg for a in (*overloads[0].args.posonlyargs, *overloads[0].args.args)}
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults

    def parameter(argument: ast.arg, default: ast.expr | None) -> str:
        if default is not None:
            return f"{argument.arg}={ast.get_source_segment(source, default)}"
        if len(overloads) > 1 and argument.arg not in required:
            return f"{argument.arg}=None"
        return argument.arg

    parts = []
    for place, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        of_class = receiver and place == 1
        parts.append(f"${receiver}" if of_class else parameter(argument, default))
        if place == len(arguments.posonlyargs) or (of_class and not arguments.posonlyargs):
            parts.append("/")
    if arguments.kwonlyargs:
        parts.append("*")
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            parts.append(parameter(argument, default))
    return f"{overloads[0].name}({', '.join(parts)})\n--\n\n"


def described(source: str, body: list[ast.stmt], path: str = "") -> Iterator[tuple[str, str]]:
    """The macro's name and the text of each thing that has a docstring."""
    overloads: dict[str, list[Function]] = {}
    for node in body:
        if isinstance(node, Function):
            overloads.setdefault(node.name, []).append(node)
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef):
            text = ast.get_docstring(node)
            if text:
                yield f"DOC_{path}{node.name}", text
            yield from described(source, node.body, f"{path}{node.name}_")
        elif isinstance(node, Function):
            text = ast.get_docstring(node)
            if not text:
                continue
            if "property" not in decorators(node):
                receiver = "type" if "classmethod" in decorators(node) else "self" if path else ""
                text = signature(source, overloads[node.name], receiver) + text
            yield f"DOC_{path}{node.name}", text
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if (
                isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            ):
                yield f"DOC_{path}{node.target.id}", inspect.cleandoc(following.value.value)


def literal(text: str) -> str:
    """The text as strings of C, one for each line."""
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        lines.append(f'"{escaped}"')
    return " \\\n\t".join(lines)


def header(stub: Path) -> str:
    source = stub.read_text(encoding="utf-8")
    lines = [f"/* Made from {stub.name} by docstrings.py. */"]
    for name, text in described(source, ast.parse(source).body):
        lines.append(f"#define {name} \\\n\t{literal(text)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: docstrings.py STUB HEADER")
    Path(sys.argv[2]).write_text(header(Path(sys.argv[1])), encoding="utf-8")


if __name__ == "__main__":
    main()
