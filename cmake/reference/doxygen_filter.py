#!/usr/bin/env python3
"""The comments of a public header as Doxygen reads them; an INPUT_FILTER of Doxyfile.

usage: doxygen_filter.py HEADER

The headers have plain comments: before a declaration, or after it on its line. Here the ones before become
/** ... */, the ones after /**< ... */. A function that follows another without a comment of its own shares the
other's, and refers to it. What Doxygen would take for a command, a link or HTML is quoted.
"""

import re
import sys

# A section: /* ---- memory ---- */.
SECTION = re.compile(r"^/\* -{2,} (.*?) -* ?\*/$", re.DOTALL)
# A comment, after the code of its line if there is any; text in quotes is no comment.
COMMENT = re.compile(r'(?P<string>"(?:\\.|[^"\\\n])*")|/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)', re.DOTALL)


def quoted(text):
    return re.sub(r"([\\@#%<>&~]|::)", r"\\\1", text)


def is_after_code(source, at):
    line = source[source.rfind("\n", 0, at) + 1 : at].strip()
    return line not in ("", "{", "}") and not line.endswith(("{",))


def filtered(source):
    """The header's text with Doxygen's comments."""
    is_first = True

    def comment(match):
        nonlocal is_first
        if match["string"] is not None:
            return match[0]
        if SECTION.match(match[0]):
            return match[0]
        if match["line"] is not None:
            text = match["line"].strip()
        else:
            text = re.sub(r"\n[ \t]*\* ?", "\n", match["block"]).strip()
        if is_first:
            is_first = False
            return "/** @file\n" + quoted(text) + "\n*/"
        if is_after_code(source, match.start()):
            return "/**< " + quoted(text) + " */"
        return "/** " + quoted(text) + " */"

    return with_references(COMMENT.sub(comment, source))


# What a function that follows it directly may refer to: a function, a type, a macro, a constant.
NAMES = [
    (re.compile(r"^QPLAN_API [\w *]+?[ *](\w+)\("), "{}()"),
    (re.compile(r"^typedef struct (\w+) \w+;"), "{}"),
    (re.compile(r"^} (\w+);"), "{}"),
    (re.compile(r"^#define (\w+)"), "#{}"),
    (re.compile(r"^(?:enum {)? *(QPLAN_\w+) ="), "#{}"),
]


def with_references(text):
    """A reference where a function follows another declaration directly."""
    lines, before = [], None
    for line in text.split("\n"):
        if before and line.startswith("QPLAN_API "):
            lines.append(f"/** See {before}. */")
        lines.append(line)
        for pattern, reference in NAMES:
            match = pattern.match(line)
            if match:
                before = before if before and line.startswith("QPLAN_API ") else reference.format(match[1])
                break
        if not line.strip() or line.startswith("/**"):
            before = None
    return "\n".join(lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(filtered(file.read()))
