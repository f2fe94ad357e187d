#!/usr/bin/env python3
"""Wraps the prose of Markdown pages at 110 columns, in place; code, tables, headings and links stay whole.

usage: wrap.py PAGE...
"""
import re
import sys

COLUMNS = 110
# A link or a piece of code is one word, unless it is long code.
PIECES = re.compile(r"!?\[[^\]]*\]\([^)]*\)|`[^`]*`|\s+|[^\s`\[!]+|.")


def words_of(text):
    words, word = [], ""
    for piece in PIECES.findall(text) + [" "]:
        if not piece.isspace():
            word += piece
        elif word:
            words += word.split(" ") if len(word) > 90 and not word.startswith("[") else [word]
            word = ""
    return words


def filled(text, first, rest):
    lines, line = [], first
    for word in words_of(text):
        if line.strip() and line not in (first, rest) and len(line) + 1 + len(word) > COLUMNS:
            lines.append(line)
            line = rest
        line += word if line in (first, rest) else " " + word
    return lines + [line]


def wrapped(text):
    lines, paragraph, first, rest, fenced = [], [], "", "", False

    def end_paragraph():
        nonlocal paragraph
        if paragraph:
            lines.extend(filled(" ".join(paragraph), first, rest))
        paragraph = []

    for line in text.split("\n"):
        item = re.match(r"(\s*(?:[-*]|\d+\.) )\s*(.*)", line)
        if item and paragraph and first == rest and re.match(re.escape(first) + r"(?!1\.)\d+\.", line):
            item = None  # a number at the beginning of a line, not of a list
        if line.lstrip().startswith("```"):
            end_paragraph()
            fenced = not fenced
            lines.append(line)
        elif fenced or (line.startswith("    ") and not paragraph and not item):
            lines.append(line)
        elif not line.strip() or re.match(r"\s*\||#|<[^a]|!\[", line):
            end_paragraph()
            lines.append(line)
        elif item:
            end_paragraph()
            first, rest, paragraph = item.group(1), " " * len(item.group(1)), [item.group(2)]
        elif paragraph:
            paragraph.append(line.strip())
        else:
            first = rest = re.match(r"\s*", line).group(0)
            paragraph = [line.strip()]
    end_paragraph()
    return "\n".join(lines)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for page in sys.argv[1:]:
        with open(page, encoding="utf-8") as file:
            old = file.read()
        new = wrapped(old)
        if new != old:
            with open(page, "w", encoding="utf-8") as file:
                file.write(new)


if __name__ == "__main__":
    main()
