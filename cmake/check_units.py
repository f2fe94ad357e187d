"""Names that compiling files together could mix up.   usage: check_units.py SOURCE_DIR

cmake/QplanUnity.cmake compiles files of one folder together. Where two of them define one name in their anonymous
namespaces, most pairs do not compile. What does compile, and may change what a program does without a word, is a
constant, an enumerator or a type of an anonymous namespace that another file of the folder uses for a name of an outer
namespace. Each is reported: "FILE: 'kName' is also mentioned by FILE"; rename the first.

Left alone: names that the other file defines itself, anywhere, and those that a using declaration brought in.
"""
import os
import re
import sys

ROOTS = ("src/packer", "src/vta", "src/ethosu", "src/npu_sim", "tools")
NAME = re.compile(r"^k?[A-Z]\w*$")


def code_of(text):
    """Without comments, preprocessor lines, and the contents of literals."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")|(\'(?:\\.|[^\'\\\n])+\')',
                  lambda match: '""' if match[1] else "0" if match[2] else " ", text, flags=re.S)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def block_after(code, begin):
    """What braces hold that were opened right before begin."""
    depth, end = 1, begin
    while depth and end < len(code):
        depth += (code[end] == "{") - (code[end] == "}")
        end += 1
    return code[begin:end - 1]


def own_names(code):
    """Constants, enumerators and types that the anonymous namespaces of a file define."""
    names = set()
    for match in re.finditer(r"\bnamespace\s*\{", code):
        for enumerators in re.finditer(r"\benum\b(?!\s+class)[\w\s:]*\{([^}]*)\}", block_after(code, match.end())):
            names.update(re.findall(r"\bk[A-Z]\w*", enumerators[1]))
        outside, depth = "", 0
        for char in block_after(code, match.end()):
            depth -= char == "}"
            if depth == 0 and char != "}":
                outside += char
            depth += char == "{"
            if depth == 0 and char == "}":
                outside += ";"
        for statement in re.split(r"[;{]", outside):
            found = re.search(r"\b(?:struct|class|enum(?:\s+class)?|union)\s+(\w+)\s*(?:final\b|:|$)", statement) or re.search(
                r"\bconstexpr\b[^=(]*?\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=|$)", statement)
            if found and NAME.match(found[1]):
                names.add(found[1])
    return names


def check(root):
    problems = []
    for top in ROOTS:
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            codes = {}
            for name in sorted(files):
                if name.endswith(".cc"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        codes[name] = code_of(file.read())
            names = {name: own_names(code) for name, code in codes.items()}
            for name in codes:
                for own in sorted(names[name]):
                    mention = re.compile(r"(?<![\w.>:])%s\b" % own)
                    definition = re.compile(r"\b(?:struct|class|enum|union|using)\s+(?:class\s+)?(?:[\w:]+::)?%s\b|\b%s\s*(?:\[[^\]]*\]\s*)*[={]" % (own, own))
                    for other, text in codes.items():
                        if other == name or own in names[other] or definition.search(text):
                            continue
                        if mention.search(text):
                            path = os.path.relpath(os.path.join(folder, name), root)
                            problems.append("%s: '%s' is also mentioned by %s" % (path, own, other))
    return problems


def main():
    problems = check(sys.argv[1])
    for problem in problems:
        print(problem)
    print("%d names that a unit could mix up" % len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
