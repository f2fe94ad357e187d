"""Programs that answer one line of JSON to each line on their standard input: what is measured, and its peers."""

import json
import subprocess


class ServerError(Exception):
    """What a program said that it could not do."""


class Server:
    def __init__(self, *command):
        self._command = [str(word) for word in command]
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    @property
    def pid(self):
        return self._process.pid

    def ask(self, *words, lines=()):
        """The answer to a command of these words, followed by these lines. ServerError with the program's reason."""
        text = "\t".join(map(str, words)) + "\n" + "".join(line + "\n" for line in lines)
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            raise ServerError(f"{self._command[0]} ended with status {self._process.wait()}")
        answer = json.loads(answer)
        if "error" in answer:
            raise ServerError(answer["error"])
        return answer

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
