"""docs/images: the pictures are those that draw.py makes of today's plan.

usage: pictures_test.py REPOSITORY COMMAND      QPLAN_UPDATE_DOCS=1: writes them anew
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

REPOSITORY, COMMAND = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
IMAGES = REPOSITORY / "docs" / "images"


class Pictures(unittest.TestCase):
    def test_they_are_those_of_the_script(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", str(IMAGES / "draw.py"), COMMAND, folder], check=True)
            drawn = sorted(path.name for path in pathlib.Path(folder).iterdir())
            self.assertEqual(drawn, ["architecture.svg", "memory.svg", "plan-layout.svg"])
            for name in drawn:
                svg = (pathlib.Path(folder) / name).read_text(encoding="utf-8")
                if os.environ.get("QPLAN_UPDATE_DOCS"):
                    (IMAGES / name).write_text(svg, encoding="utf-8")
                self.assertEqual(svg, (IMAGES / name).read_text(encoding="utf-8"), "QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R docs/pictures draws it anew")
                self.assertTrue(xml.etree.ElementTree.fromstring(svg).tag.endswith("svg"))

    def test_pages_show_them(self):
        paths = [path for path in REPOSITORY.rglob("*.md") if path.relative_to(REPOSITORY).parts[0] != "build"]
        pages = "".join(path.read_text(encoding="utf-8") for path in paths)
        for picture in IMAGES.glob("*.svg"):
            self.assertIn(f"images/{picture.name})", pages)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
