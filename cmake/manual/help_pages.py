"""What `qplan --help` and the help of its commands say, as data."""

import re
import subprocess


class Option:
    def __init__(self, names, argument, text):
        self.names, self.argument, self.text = names, argument, text

    @property
    def values(self):
        """The words that the option takes, where the help lists them: WHEN:{auto,off}."""
        return [word for word in self._listed() if word != "FILE"]

    @property
    def or_file(self):
        """Whether it takes a file, too: WHAT:{isas,FILE}."""
        return "FILE" in self._listed()

    def _listed(self):
        listed = re.search(r"\{([^}]*)\}", self.argument)
        return listed.group(1).split(",") if listed else []


class Page:
    """The help of one command. words: ["npu", "replay"]; [] is qplan itself."""

    def __init__(self, words, text):
        self.words, self.text = words, text
        lines = text.splitlines()
        self.summary = lines[0] if lines else ""
        self.usage = next((line[len("Usage: "):] for line in lines if line.startswith("Usage: ")), "")
        self.positionals = [option for option in _entries(lines, "Positionals:")]
        self.options = [option for option in _entries(lines, "Options:") if option.names[0].startswith("-")]
        self.commands = [(entry.names[0], entry.text) for entry in _entries(lines, "Subcommands:")]
        sections = [i for i, line in enumerate(lines) if re.match(r"[A-Z][a-z]+:$", line) and not line.startswith("Examples")]
        last = sections[-1] + 1 if sections else 0
        while last < len(lines) and lines[last].startswith("  "):
            last += 1
        self.footer = "\n".join(lines[last:]).strip("\n")


def _entries(lines, heading):
    """Options of a section: two blanks, names, at least two blanks or a new line, text; more text is indented further."""
    if heading not in lines:
        return
    entry = None
    for line in lines[lines.index(heading) + 1:]:
        if not line.startswith("  "):
            break
        if line[2] == " ":
            if entry is not None:
                entry.text = (entry.text + " " + line.strip()).strip()
            continue
        if entry is not None:
            yield entry
        # The text begins in column 30, or on the next line where the names reach as far.
        fits = len(line) < 30 or line[29] == " "
        left, text = (line[2:30], line[30:]) if fits else (line[2:], "")
        words = left.split()
        names = words[0].split(",")
        entry = Option(names, " ".join(words[1:]), text.strip())
    if entry is not None:
        yield entry


def pages(command):
    """Pages of qplan and of every command, in the order of the help."""
    found = []

    def visit(words):
        text = subprocess.run([command, *words, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        page = Page(words, text)
        found.append(page)
        for name, _ in page.commands:
            visit([*words, name])

    visit([])
    return found
