# SPDX-License-Identifier: MIT
"""Makes one book of pages that are read in other ways, too.

The guides are plain reStructuredText, the manual pages are made by rst2man, and the README
is Markdown for a forge. None of them has Sphinx's roles. So the names of functions, types
and constants become links here, wherever they stand.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.util.nodes import make_refnode

NAME = re.compile(
    r"(?P<c>\btshare_[a-z0-9_]+)(?=\(\))|\bstruct (?P<struct>tshare_\w+)"
    r"|(?P<constant>\bTSHARE_[A-Z0-9_]+[A-Z0-9]\b)"
    r"|(?P<python>\b(?:tshare(?:\.\w+)+|(?:Tensor|CudaTensor|Pin|StreamWait|Watcher|Region)\.\w+))(?=\(\))"
)

# The pages for files that are elsewhere, or in another form.
PAGES = {
    "ABI/testing": "reference/sysfs",
    "CHANGELOG.md": "changes",
    "CONTRIBUTING.md": "contributing",
    "README.md": "index",
    "RELEASING.md": "releasing",
    "SECURITY.md": "security",
    "examples/README.rst": "examples",
    "include/tshare.h": "reference/c",
    "include/uapi/linux/tshare.h": "reference/abi",
}


def fill_in_version(app, docname, source):
    """Do as meson does for the manual pages."""
    if docname.startswith("man/"):
        source[0] = source[0].replace("@VERSION@", app.config.version)


def drop_contents(app, doctree):
    """Remove a page's table of contents and the links to it: the theme has one beside the page."""
    for topic in list(doctree.findall(nodes.topic)):
        if "contents" in topic["classes"]:
            topic.parent.remove(topic)
            for title in doctree.findall(nodes.title):
                title.attributes.pop("refid", None)


def page_of(path: str, documents) -> str | None:
    """Return the page that shows a file, which is named from the top or from Documentation/."""
    path = path.removeprefix("../").removeprefix("Documentation/")
    page = PAGES.get(path, path.removesuffix(".rst"))
    return page if page in documents else None


def resolve_file(app, environment, node, contents):
    """Find the page for a link in Markdown to a file of the tree."""
    # MyST makes this type of a link that it doesn't find.
    if node["reftype"] != "any":
        return None
    page = page_of(node["reftarget"], environment.found_docs)
    return make_refnode(app.builder, node["refdoc"], page, None, contents) if page else None


def resolve_files(app, doctree, docname):
    """Lead links in reStructuredText to files of the tree to the pages that show them."""
    for reference in doctree.findall(nodes.reference):
        page = page_of(reference.get("refuri", ""), app.env.found_docs)
        if page:
            reference["refuri"] = app.builder.get_relative_uri(docname, page)


def targets(environment) -> dict[str, tuple[str, str]]:
    """Return the page and anchor of each name of C and Python."""
    found = {}
    for domain in ("c", "py"):
        for name, _, _, page, anchor, _ in environment.get_domain(domain).get_objects():
            found[name] = (page, anchor)
    return found


def can_have_links(text: nodes.Text) -> bool:
    node = text.parent
    while node is not None:
        if isinstance(
            node, (nodes.reference, nodes.literal_block, nodes.title, nodes.Inline)
        ) and not isinstance(node, (nodes.literal, nodes.strong, nodes.emphasis)):
            return False
        node = node.parent
    return True


def linked(text: str, place) -> Iterator[nodes.Node]:
    """Yield the text with links to what place() finds."""
    end = 0
    for name in NAME.finditer(text):
        node = place(name)
        if node:
            yield nodes.Text(text[end : name.start()])
            yield node
            end = name.end()
    yield nodes.Text(text[end:])


def link_names(app, doctree, docname):
    known = targets(app.env)

    def place(name):
        kind, written = name.lastgroup, name[name.lastgroup]
        if kind == "python":
            candidates = [written, f"tshare.{written}"]
        elif docname == "reference/abi":
            candidates = [f"uapi.{written}", written]
        else:
            candidates = [written, f"uapi.{written}"]
        for candidate in candidates:
            if candidate in known:
                page, anchor = known[candidate]
                return make_refnode(app.builder, docname, page, anchor, nodes.Text(name[0]))
        return None

    for text in list(doctree.findall(nodes.Text)):
        if can_have_links(text):
            text.parent.replace(text, list(linked(str(text), place)))


def setup(app):
    app.connect("source-read", fill_in_version)
    app.connect("doctree-read", drop_contents)
    app.connect("missing-reference", resolve_file)
    app.connect("doctree-resolved", resolve_files)
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
