# SPDX-License-Identifier: MIT
"""Common parts of the directives that turn a file of the tree into a part of a page."""

from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.util.nodes import nested_parse_with_titles


class Included(Directive):
    """A directive whose argument is the file, relative to the page."""

    required_arguments = 1

    def lines(self, path: Path) -> Iterable[tuple[int, str]]:
        """Return lines of reStructuredText, with those of the file that they come from."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        environment = self.state.document.settings.env
        name, path = environment.relfn2path(self.arguments[0])
        environment.note_dependency(name)
        lines = StringList()
        for number, line in self.lines(Path(path)):
            lines.append(line, path, number)
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, lines, node)
        return node.children
