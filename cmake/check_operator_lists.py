"""Knowledge of operators is in src/packer/op, not in lists of their names.   usage: check_operator_lists.py SOURCE_DIR

Refused in the rest of the packer and in the VTA compiler:
- a braced list of constants that names more than MOST operators:   {"reshape", "transpose", "squeeze", ...}
- a statement that compares with more than MOST of them:            node.is("add") || node.is("multiply") || ...
What such a list says is a property of each operator: give OpDef a field (src/packer/op/op_def.h), or ask one of the
questions at the end of that header.

Left alone: arguments of patterns (op, one_of, commutative, ...), which are about these operators; importers, which
translate names; and a list with a comment `operator list: WHY` inside or on the line before, for tables that give
each operator a function of its own.
"""
import os
import re
import sys

MOST = 3
ROOMS = ("src/packer/passes", "src/packer/text", "src/packer/pipeline", "src/packer/partition", "src/packer/target",
         "src/packer/pattern", "src/packer/schedule", "src/packer/write", "src/packer/inspect", "src/packer/evaluate",
         "src/packer/memory", "src/packer/ir", "src/vta/compiler")
PATTERNS = {"op", "one_of", "commutative", "optional", "dominates", "call", "call_all", "get_op"}
DIALECTS = ("qnn", "nn", "image")
REASON = "operator list:"


def operator_names(root):
    """ops.def lists functions: qnn_conv2d makes "qnn.conv2d"."""
    with open(os.path.join(root, "src/packer/op/ops.def"), encoding="utf-8") as file:
        functions = re.findall(r"^QPLAN_OP\((\w+)\)", file.read(), re.M)
    dialect = re.compile(r"^(%s)_" % "|".join(DIALECTS))
    return {dialect.sub(r"\1.", function) for function in functions}


def tokens(text):
    """(kind, text, line) of comments, strings, words and single characters."""
    line = 1
    for match in re.finditer(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.|\n)*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|\w+|\s+|.',
                             text, re.S):
        part = match.group()
        kind = ("comment" if part.startswith(("//", "/*")) else "string" if part.startswith('"') else
                "space" if part.isspace() else "other")
        yield kind, part, line
        line += part.count("\n")


class Group:
    """A pair of brackets, or the statement between two semicolons of a block."""

    def __init__(self, bracket, line, callee):
        self.bracket, self.line, self.callee = bracket, line, callee
        self.is_pattern = callee in PATTERNS
        self.names = set()
        self.has_statements = False
        self.compared = {}  # by name, the line


def offences(text, known):
    found, excused, stack = [], set(), [Group("{", 1, "")]
    stack[0].has_statements = True
    word = before = ""

    def close_statement(group, line):
        if len(group.compared) > MOST and not group.is_pattern:
            found.append((min(group.compared.values()), line, set(group.compared)))
        group.compared = {}

    for kind, part, line in tokens(text):
        if kind == "space":
            continue
        if kind == "comment":
            if REASON in part:
                excused.update(range(line, line + part.count("\n") + 2))
            continue
        if kind == "string" and part[1:-1] in known:
            if not any(group.is_pattern for group in stack):
                for group in reversed(stack):
                    if group.has_statements:
                        break
                    if group.bracket == "{":
                        group.names.add(part[1:-1])
                if before == "==" or stack[-1].callee == "is":
                    block = next((group for group in reversed(stack) if group.bracket == "{"), stack[0])
                    block.compared.setdefault(part[1:-1], line)
        elif part in "({[":
            stack.append(Group(part, line, word if part == "(" else ""))
        elif part in ")}]" and len(stack) > 1:
            group = stack.pop()
            close_statement(group, line)
            if part == "}" and not group.has_statements and len(group.names) > MOST:
                found.append((group.line, line, group.names))
            if group.has_statements:  # what follows a block is another statement
                stack[-1].has_statements = True
                close_statement(stack[-1], line)
        elif part == ";":
            stack[-1].has_statements = True
            close_statement(stack[-1], line)
        if kind == "other":
            before = before + part if part == "=" and before in ("=", "!") else part
            if re.match(r"\w", part):
                word = part
    reported = {}
    for begin, end, names in found:  # an inner list and the table around it are one offence
        if excused.isdisjoint(range(begin, end + 1)):
            reported.setdefault(frozenset(names), begin)
    return sorted((line, sorted(names)) for names, line in reported.items())


def main():
    root = sys.argv[1]
    known = operator_names(root)
    count = 0
    for room in ROOMS:
        for folder, _, files in os.walk(os.path.join(root, room)):
            for name in sorted(files):
                if not name.endswith((".cc", ".h")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    for line, names in offences(file.read(), known):
                        count += 1
                        print(f"{os.path.relpath(path, root)}:{line}: a list of operators ({', '.join(names)}): what it says "
                              "of them is for OpDef (src/packer/op/op_def.h); for a table of functions add a comment "
                              f"'// {REASON} WHY'")
    print(f"{len(known)} operators, {count} offences")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
