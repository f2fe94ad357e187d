#!/usr/bin/env python3
"""docs/python-reference.md: every public name of the Python package with its signature and what its docstring says.

usage: python_reference.py PACKAGE_ROOT      prints the page; PACKAGE_ROOT: the directory that has qplan/
"""

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import textwrap
import types

HEAD = """# Python reference

Every public name of the package, from its docstrings. [python.md](python.md) explains how they work together.
This page is generated: `QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R docs/python_reference` writes it anew.
"""
MODULES = [
    ("qplan", "the package"),
    ("qplan.passes", "patterns, rewrites and passes"),
    ("qplan.plot", "pictures, with matplotlib"),
    ("qplan.torch", "models of PyTorch"),
]


def default(value):
    return value.__name__ if callable(value) else repr(value)


def signature(function, skip_self):
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    parts, has_star = [], False
    parameters = list(found.parameters.values())[1 if skip_self else 0 :]
    for parameter in parameters:
        name = parameter.name
        if name.startswith("_"):
            continue  # not the caller's
        if parameter.kind is parameter.VAR_POSITIONAL:
            name, has_star = "*" + name, True
        elif parameter.kind is parameter.VAR_KEYWORD:
            name = "**" + name
        elif parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            parts.append("*")
            has_star = True
        if parameter.default is not parameter.empty:
            name += "=" + default(parameter.default)
        parts.append(name)
    return f"({', '.join(parts)})"


def docstring(thing, name):
    """The docstring. Exits if it is missing, or if it is the signature that dataclasses and named tuples get."""
    text = (inspect.getdoc(thing) or "").strip()
    if not text or text.startswith(f"{name}("):
        sys.exit(f"python_reference.py: {name} has no docstring")
    return text


ITEM = re.compile(r"^ {1,3}(\w+(?:, \w+)*): (.*)$")


def prose(text, first="", rest=""):
    """One paragraph, wrapped. What is in backquotes is code; Markdown interprets nothing else of it."""
    pieces = re.split(r"(`[^`]+`)", " ".join(text.split()))
    text = "".join(piece if piece.startswith("`") else re.sub(r"([_*<`])", r"\\\1", piece) for piece in pieces)
    return textwrap.fill(text, 110, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)


def paragraphs(text):
    """A docstring as Markdown: blocks indented by four are code, indented "name: text" lines are lists."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            blocks.append(block)
            continue
        pieces = [["", []]]
        for line in lines:
            item = ITEM.match(line)
            if item:
                pieces.append([item[1], [item[2]]])
            else:
                pieces[-1][1].append(line)
        if pieces[0][1]:
            blocks.append(prose(" ".join(pieces[0][1])))
        items = [prose(f"{name}: " + " ".join(words), "- ", "  ") for name, words in pieces[1:]]
        if items:
            blocks.append("\n".join(items))
    return "\n\n".join(blocks)


def keys_of(owner):
    """(key, type) of a TypedDict, as its source has them."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    for line in tree.body:
        if isinstance(line, ast.AnnAssign):
            yield line.target.id, ast.unparse(line.annotation).replace("'", "").replace('"', "").replace("|", "\\|")


def public_members(owner):
    """name: method or property of a class and of those of its bases that are the package's, bases first.

    Data (a default of the constructor, which the class's heading has) and the fields of named tuples are left out.
    """
    found = {}
    for base in reversed(owner.__mro__):
        if base.__module__.split(".")[0] == "qplan":
            found.update({name: member for name, member in vars(base).items() if not name.startswith("_")})
    fields = getattr(owner, "_fields", ())
    return {name: found[name] for name in found if name not in fields and hasattr(found[name], "__get__")}


def members(owner):
    """(heading, docstring) of the public methods and properties of a class, in the order of its source."""
    for name, member in public_members(owner).items():
        if isinstance(member, (staticmethod, classmethod)):
            heading = name + signature(member.__func__, isinstance(member, classmethod))
        elif inspect.isfunction(member):
            heading = name + signature(member, True)
        else:
            heading = name
        yield heading, docstring(member, f"{owner.__name__}.{name}")


def class_lines(name, owner):
    lines = []
    if hasattr(owner, "__total__"):  # a TypedDict
        lines.append(f"### `{name}`")
        lines += ["", paragraphs(docstring(owner, name)), "", "| key | type |", "|---|---|"]
        lines += [f"| `{key}` | `{value}` |" for key, value in keys_of(owner)]
        return lines
    if hasattr(owner, "_fields"):  # a named tuple
        lines.append(f"### `{name}({', '.join(owner._fields)})`")
    elif "__init__" in vars(owner):
        lines.append(f"### `{name}{signature(owner.__init__, True)}`")
    else:
        lines.append(f"### `{name}`")
    lines += ["", paragraphs(docstring(owner, name))]
    for heading, text in members(owner):
        lines += ["", f"#### `{name}.{heading}`", "", paragraphs(text)]
    return lines


def module_lines(name, title, seen):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        sys.exit(f"python_reference.py: {error}")
    lines = [f"## {name}: {title}", "", paragraphs(docstring(module, name))]
    names = getattr(module, "__all__", None)
    if names is None:
        public = [n for n, v in vars(module).items() if inspect.isfunction(v) or inspect.isclass(v)]
        names = [n for n in public if not n.startswith("_") and vars(module)[n].__module__ == name]
    for public in names:
        thing = getattr(module, public)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        lines.append("")
        if inspect.isclass(thing):
            lines += class_lines(public, thing)
        elif callable(thing):
            lines += [f"### `{public}{signature(thing, False)}`", "", paragraphs(docstring(thing, public))]
    return lines


def page(root):
    sys.path.insert(0, root)
    if importlib.util.find_spec("torch") is None:  # functions that nobody calls need no more than its name
        sys.modules["torch"] = types.ModuleType("torch")
    seen = set()
    parts = [HEAD.rstrip("\n")]
    for name, title in MODULES:
        parts.append("\n".join(module_lines(name, title, seen)))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))
