"""Names that compiling files together could mix up.   usage: check_units.py SOURCE_DIR

cmake/QplanUnity.cmake compiles files of one target together. Where two of them define one name in the anonymous namespaces
of one namespace, most pairs do not compile. What does compile, and may change what a program does without a word, is a
constant, an enumerator or a type of an anonymous namespace that another file of the target, in the same namespace or one
inside it, uses for a name of an outer namespace. Each is reported: "FILE: 'kName' is also mentioned by FILE"; rename the
first.

Left alone: names that the other file defines itself, anywhere, and those that a using declaration brought in.
"""
import os
import re
import sys

# The folders of each target whose files are compiled together.
TARGETS = (("src/packer", "src/vta/compiler", "src/ethosu/compiler"),
           ("src/vta/sim", "src/ethosu/sim", "src/npu_sim"),
           ("src/host",),
           ("tools",))
# Each folder is one target: its functions are compared, not its constants.
TESTS = "tests"
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


def namespaces_of(code):
    """Each namespace that a file opens, as (its full name, its content); "" is the global one."""
    found = [("", code)]
    for match in re.finditer(r"\bnamespace\s+([\w:]+)\s*\{", code):
        found.append((match[1], block_after(code, match.end())))
    return found


def own_names(code):
    """Constants, enumerators and types that the anonymous namespaces of a file define, with the namespaces around them."""
    names = set()
    for space, content in namespaces_of(code):
        names.update((space, name) for name in anonymous_names(content))
    return {(space, name) for space, name in names
            if not any(other.startswith(space) and other != space and (other, name) in names for other, _ in names)}


def anonymous_names(code):
    names = set()
    for match in re.finditer(r"\bnamespace\s*\{", code):
        for enumerators in re.finditer(r"\benum\b(?!\s+class)[\w\s:]*\{([^}]*)\}", block_after(code, match.end())):
            names.update(re.findall(r"\bk[A-Z]\w*", enumerators[1]))
        for statement in re.split(r"[;{]", outside_of_blocks(block_after(code, match.end()))):
            found = re.search(r"\b(?:struct|class|enum(?:\s+class)?|union)\s+(\w+)\s*(?:final\b|:|$)", statement) or re.search(
                r"\bconstexpr\b[^=(]*?\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=|$)", statement)
            if found and NAME.match(found[1]):
                names.add(found[1])
    return names


def outside_of_blocks(code):
    """What is in no braces; a pair of them is left as "{;"."""
    outside, depth = "", 0
    for char in code:
        depth -= char == "}"
        if depth == 0 and char != "}":
            outside += char
        depth += char == "{"
        if depth == 0 and char == "}":
            outside += ";"
    return outside


def own_functions(code):
    """The functions that the anonymous namespaces of a file define, as (namespace around, name, types of arguments)."""
    found = set()
    for space, content in namespaces_of(code):
        own = outside_of_named(content)
        for match in re.finditer(r"\bnamespace\s*\{", own):
            outside = outside_of_blocks(block_after(own, match.end()))
            for name, arguments in re.findall(r"[\w>*&\]]\s*[\s*&](\w+)\(([^()]*)\)\s*(?:noexcept\s*)?\{", outside):
                types = [re.sub(r"\s*=.*|(?<=[\s*&>])\w+$", "", argument.strip()).strip() for argument in arguments.split(",")]
                found.add((space, name, ", ".join(types)))
    return found


def outside_of_named(code):
    """Without the named namespaces that code opens, which namespaces_of gives on their own."""
    match = re.search(r"\bnamespace\s+[\w:]+\s*\{", code)
    while match:
        code = code[:match.start()] + code[match.end() + len(block_after(code, match.end())):]
        match = re.search(r"\bnamespace\s+[\w:]+\s*\{", code)
    return code


def is_inside(space, outer):
    return outer in ("", space) or space.startswith(outer + "::")


def codes_of(root, folders, ending=".cc"):
    codes = {}
    for top in folders:
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(files):
                if name.endswith(ending):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        codes[os.path.relpath(os.path.join(folder, name), root)] = code_of(file.read())
    return codes


def check_functions(codes):
    problems, first = [], {}
    for path, code in codes.items():
        for function in sorted(own_functions(code)):
            if function in first:
                problems.append("%s: '%s(%s)' is also defined by %s" % (path, *function[1:], first[function]))
            first.setdefault(function, path)
    return problems


def check_names(codes):
    names = {path: own_names(code) for path, code in codes.items()}
    # What a file says in each of its namespaces, and the words of it all, to be quick.
    spaces = {path: namespaces_of(code) for path, code in codes.items()}
    words = {path: set(re.findall(r"\w+", code)) for path, code in codes.items()}
    problems = []
    for path in codes:
        for outer, own in sorted(names[path]):
            mention = re.compile(r"(?<![\w.>:])%s\b" % own)
            definition = re.compile(r"\b(?:struct|class|enum|union|using)\s+(?:class\s+)?(?:[\w:]+::)?%s\b|\b%s\s*(?:\[[^\]]*\]\s*)*[={]" % (own, own))
            for other, text in codes.items():
                if other == path or own not in words[other] or definition.search(text):
                    continue
                if any(name == own for _, name in names[other]):
                    continue
                if any(mention.search(content) for space, content in spaces[other] if is_inside(space, outer)):
                    problems.append("%s: '%s' is also mentioned by %s" % (path, own, other))
    return problems


def check(root):
    problems = []
    for folders in TARGETS:
        codes = codes_of(root, folders)
        problems += check_names(codes) + check_functions(codes)
    tests = os.path.join(root, TESTS)
    for folder in sorted(os.listdir(tests)) if os.path.isdir(tests) else []:
        problems += check_functions(codes_of(root, (os.path.join(TESTS, folder),), "_test.cc"))
    return problems


def main():
    problems = check(sys.argv[1])
    for problem in problems:
        print(problem)
    print("%d names that a unit could mix up" % len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
