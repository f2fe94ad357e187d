#!/usr/bin/env python3
"""Writes manual pages and shell completions from the help of the command.

usage: generate.py COMMAND VERSION DIRECTORY
DIRECTORY gets man/man1/qplan.1, qplan-pack.1, ..., bash/qplan and zsh/_qplan. The date of the pages is SOURCE_DATE_EPOCH's,
or left out: the same command gives the same files.
"""

import os
import pathlib
import sys
import time

from help_pages import pages


def roff(text):
    """Text as roff prints it unchanged."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def manual(page, every, version):
    name = "-".join(["qplan", *page.words])
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    date = time.strftime("%Y-%m-%d", time.gmtime(int(epoch))) if epoch else ""
    out = [f'.TH {name.upper()} 1 "{date}" "qplan {version}" "qplan manual"', ".SH NAME"]
    out.append(f"{roff(name)} \\- {roff(page.summary.rstrip('.'))}")
    out += [".SH SYNOPSIS", ".B " + roff(page.usage)]
    if page.commands:
        out.append(".SH COMMANDS")
        for command, text in page.commands:
            out += [".TP", f".B {roff(command)}", f"{roff(text)}; see \\fB{roff('-'.join([name, command]))}\\fR(1)"]
    for heading, entries in (("ARGUMENTS", page.positionals), ("OPTIONS", page.options)):
        if entries:
            out.append(f".SH {heading}")
        for entry in entries:
            names = ", ".join(f"\\fB{roff(text)}\\fR" for text in entry.names)
            out += [".TP", names + (" " + roff(entry.argument) if entry.argument else ""), roff(entry.text) or "\\&"]
    if page.footer:
        out += [".SH NOTES", ".nf", roff(page.footer), ".fi"]
    if page.words:
        others = ["qplan" if len(page.words) == 1 else "-".join(["qplan", *page.words[:-1]])]
    else:
        others = ["-".join(["qplan", *other.words]) for other in every if len(other.words) == 1]
    out += [".SH SEE ALSO", ", ".join(f"\\fB{roff(other)}\\fR(1)" for other in others)]
    return "\n".join(out) + "\n"


BASH = """# bash completion for qplan; generated from its help.
_qplan() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD - 1]}" path="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${COMP_WORDS[i]}" in
%(paths)s
    esac
  done
  case "$path $before" in
%(values)s
  esac
  if [[ $word == -* ]]; then
    case "$path" in
%(options)s
    esac
    return
  fi
  case "$path" in
%(commands)s
  esac
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -o filenames -F _qplan qplan
"""


def bash(every):
    key = lambda page: "".join(" " + word for word in page.words)
    reply = 'COMPREPLY=($(compgen -W "%s" -- "$word")); return'
    # Words that are not those of a list are completed as files.
    reply_or_file = 'COMPREPLY=($(compgen -W "%s" -- "$word")); [[ ${#COMPREPLY[@]} -eq 0 ]] || return'
    return BASH % {
        "paths": "\n".join(f'      "{key(page)}") path="{key(page)}" ;;' for page in every if page.words),
        "values": "\n".join(
            f'    "{key(page)} {name}") ' + (reply_or_file if option.or_file else reply) % " ".join(option.values) + " ;;"
            for page in every for option in page.options if option.values for name in option.names
        ) or '    "") ;;',
        "options": "\n".join(
            f'      "{key(page)}") COMPREPLY=($(compgen -W "'
            + " ".join(name for option in page.options for name in option.names) + '" -- "$word")) ;;'
            for page in every
        ),
        "commands": "\n".join(
            f'    "{key(page)}") ' + reply % " ".join(name for name, _ in page.commands) + " ;;" for page in every if page.commands
        ),
    }


def zsh_text(text):
    """Text inside [...] of a specification, which is inside '...'."""
    return text.replace("\\", "").replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh(every):
    out = ["#compdef qplan", "# zsh completion for qplan; generated from its help."]
    for page in every:
        function = "_".join(["_qplan", *page.words]).replace("-", "_")
        out.append(f"{function}() {{")
        specs = []
        for option in page.options:
            values = f"({' '.join(option.values)})" if option.values else "_files"
            if option.values and option.or_file:
                values = f'{{_alternative "words:word:{values}" "files:file:_files"}}'
            for name in option.names:
                argument = f":{option.argument.split()[0].split(':')[0].lower()}:{values}" if option.argument and "Needs" not in option.argument else ""
                specs.append(f"'*{name}[{zsh_text(option.text)}]{argument}'")
        if page.commands:
            specs += ["'1: :->command'", "'*:: :->arguments'"]
        else:
            specs.append("'*: :_files'")
        out.append("  local state line\n  _arguments -C \\\n    " + " \\\n    ".join(specs))
        if page.commands:
            names = " ".join(f"'{name}:{zsh_text(text)}'" for name, text in page.commands)
            out += ["  case $state in", f"    command) local -a commands=({names}); _describe command commands ;;",
                    "    arguments) case $words[1] in"]
            for name, _ in page.commands:
                out.append(f"      {name}) {function}_{name.replace('-', '_')} ;;")
            out += ["    esac ;;", "  esac"]
        out.append("}")
    out.append('_qplan "$@"')
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    every = pages(sys.argv[1])
    folder = pathlib.Path(sys.argv[3])
    files = {f"man/man1/{'-'.join(['qplan', *page.words])}.1": manual(page, every, sys.argv[2]) for page in every}
    files["bash/qplan"] = bash(every)
    files["zsh/_qplan"] = zsh(every)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
