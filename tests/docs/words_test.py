#!/usr/bin/env python3
"""Checks the Markdown pages: width of prose, targets of links, the glossary, and phrases that CONTRIBUTING.md rules out.

usage: words_test.py REPOSITORY
A line that needs an exception ends with <!-- words: ok -->. Code, tables, generated pages and results are not checked.
"""
import functools
import os
import re
import sys
import unittest

ROOT = os.path.abspath(sys.argv[1])
COLUMNS = 110
SKIPPED_FOLDERS = re.compile(r"^(\.git|build[^/]*|third_party|benchmarks/results/\d[^/]*)$")
GENERATED = {"docs/supported_ops.md", "docs/operators.md"}  # their texts are those of tables
EXCEPTION = "<!-- words: ok -->"

# Phrases that read badly, with what to write. A phrase belongs here only if it is wrong wherever it occurs.
PHRASES = [
    (r"behind", "after"),
    (r"lies? (in|at|inside|between|behind|where)", "is in, is at"),
    (r"stands? (in|at|behind|beside|first|last|where)", "is in, is at, comes first"),
    (r"(tell|tells|told) (how|what|which|where|whether|why|for)", "states, reports, prints"),
    (r"but for", "except"),
    (r"names it not|is none", "does not name it, there is none"),
    (r"stand-ins?", "fallback"),
    (r"(lay|laid|lays) anew", "repack"),
    (r"moves (nothing|no bytes)", "copies nothing"),
    (r"go(es)? about its work", "runs"),
    (r"chains? of (layers|steps)|stages of (a )?(chain|cascade)s?", "cascade, its layers"),
    (r"float forms?", "float requantisation"),
    (r"units? of work", "work item"),
]
PHRASES = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), better) for pattern, better in PHRASES]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def without_code(line):
    return re.sub(r"`[^`]*`", "``", line)


def lines_outside_fences(text):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def is_prose(line):
    return not re.match(r"\s*\||#|<|!\[|    \S", line)


def too_wide(text):
    """Lines that could be broken at a blank and are wider than COLUMNS."""
    for number, line in lines_outside_fences(text):
        if len(line) <= COLUMNS or not is_prose(line) or line.endswith(EXCEPTION):
            continue
        words = re.sub(r"!?\[[^\]]*\]\([^)]*\)", "link", line.strip()).split()
        if len(words) > 2:
            yield number, f"{len(line)} columns, at most {COLUMNS}; python3 tests/docs/wrap.py PAGE wraps it"


def bad_phrases(text):
    previous = ""
    for number, line in lines_outside_fences(text):
        # A phrase may be broken across two lines: the last word of the line before is looked at, too.
        checked = LINK.sub(lambda link: link.group(0).split("](")[0], without_code(line))
        joined = previous + checked.strip()
        if not line.endswith(EXCEPTION):
            for pattern, better in PHRASES:
                found = pattern.search(joined)
                if found and found.end() > len(previous):
                    yield number, f"'{found.group(0)}' reads badly; write: {better}"
        previous = " ".join(checked.split()[-3:]) + " " if checked.strip() and is_prose(line) else ""


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    found = set(re.findall(r'<a id="([^"]+)"></a>', text))
    for _, line in lines_outside_fences(text):
        heading = re.match(r"#+ (.*)", line)
        if heading:
            name, count = slug(heading.group(1)), 0
            while (name if count == 0 else f"{name}-{count}") in found:
                count += 1
            found.add(name if count == 0 else f"{name}-{count}")
    return found


@functools.lru_cache(maxsize=None)
def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def dead_links(page, text):
    for number, line in lines_outside_fences(text):
        for target in LINK.findall(without_code(line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), path)) if path else os.path.join(ROOT, page)
            if not os.path.exists(file):
                yield number, f"'{target}' does not exist"
            elif anchor and file.endswith(".md") and anchor not in anchors(read(file)):
                yield number, f"'{target}': the page has no such anchor"


def pages():
    for folder, folders, files in os.walk(ROOT):
        relative = os.path.relpath(folder, ROOT)
        folders[:] = sorted(name for name in folders
                            if not SKIPPED_FOLDERS.match(os.path.normpath(os.path.join(relative, name))))
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.normpath(os.path.join(relative, name))


# "Of the largest block." names no subject: "Extents of the largest block."
FRAGMENT = re.compile(r"^\s*(?://|#|/\*\*?|\*) Of [a-z0-9]")


def fragments(text):
    return [number for number, line in enumerate(text.splitlines(), 1) if FRAGMENT.match(line)]


def code_files():
    for top in ("src", "kernels", "format", "capi", "include", "tools", "python", "samples", "benchmarks", "tests", "cmake"):
        for folder, folders, files in os.walk(os.path.join(ROOT, top)):
            folders[:] = [name for name in folders if name not in ("build", "__pycache__")]
            for name in files:
                if name.endswith((".cc", ".h", ".hpp", ".c", ".inl", ".def", ".py", ".cmake", ".sh", "CMakeLists.txt")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


class Checks(unittest.TestCase):
    """Each check finds what it is for, and nothing else."""

    def test_width(self):
        self.assertEqual([1], [number for number, _ in too_wide("word " * 30)])
        self.assertEqual([], list(too_wide("| " + "word " * 30 + "|\n```\n" + "word " * 30 + "\n```\n# " + "word " * 30)))
        self.assertEqual([], list(too_wide("- [a link](" + "x" * 120 + ")")))

    def test_phrases(self):
        found = [message.split("'")[1] for _, message in
                 bad_phrases("The plan tells how.\nIt lies\nin flash, behind it.\n`behind` is code.")]
        self.assertEqual(["tells how", "lies in", "behind"], sorted(found, key=["tells how", "lies in", "behind"].index))
        self.assertEqual([], list(bad_phrases("It relies on it, and belies nothing.\n```\nbehind\n```\n"
                                              "left behind " + EXCEPTION)))

    def test_fragments(self):
        self.assertEqual([1, 3], fragments("// Of int8 weights.\nint x;  // Of y.\n  /* Of a model: its share. */\n// Offsets."))

    def test_anchors(self):
        self.assertEqual({"a-b", "a-b-1", "c_d", "term"}, anchors('# A b\n## A `b`!\n### c_d\n<a id="term"></a>'))


class Pages(unittest.TestCase):
    def check(self, find, skipped=()):
        offences = [f"{page}:{number}: {message}" for page in pages() if page not in skipped
                    for number, message in find(page, read(os.path.join(ROOT, page)))]
        self.assertEqual(0, len(offences), f"{len(offences)} offences\n" + "\n".join(offences))

    def test_prose_is_wrapped(self):
        self.check(lambda page, text: too_wide(text), GENERATED)

    def test_links_resolve(self):
        self.check(dead_links)

    def test_phrases_that_read_badly_do_not_come_back(self):
        self.check(lambda page, text: bad_phrases(text), GENERATED)

    def test_comments_name_what_they_are_about(self):
        offences = [f"{path}:{number}: begins with 'Of'" for path in code_files()
                    for number in fragments(read(os.path.join(ROOT, path)))]
        self.assertEqual([], offences)

    def test_every_word_of_the_glossary_can_be_linked(self):
        text = read(os.path.join(ROOT, "docs", "glossary.md"))
        entries = [line for line in text.splitlines() if line.startswith("- ")]
        names = []
        for line in entries:
            entry = re.match(r'- <a id="([a-z0-9-]+)"></a>\*\*[^*]+\*\*', line)
            self.assertIsNotNone(entry, f"not '- <a id=\"word\"></a>**word**: ...': {line}")
            names.append(entry.group(1))
        self.assertEqual(sorted(set(names)), sorted(names), "two words have one anchor")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
