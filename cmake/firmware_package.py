"""Writes the runtime as a folder of sources for projects with a build system of their own: an Arduino library, an ESP-IDF
component, a Zephyr module, a CMSIS-Pack and a CMake project at once. Nothing of it is looked for elsewhere: FlatBuffers' and
dlpack's headers and what flatc makes of the schemas are in it.

usage: firmware_package.py LIST OUT --version V --arch A --source ROOT --headers DIR...   (run by cmake/QplanFirmwarePackage.cmake)
  LIST      a source a line, followed by a tab and options of the compiler that it needs
  --source  the repository; --headers: where else headers are looked for
"""
import argparse
import os
import re
import sys
import xml.sax.saxutils

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
NAMED_HEADER = re.compile(r'^#define \w+ "([^"]+\.h)"', re.M)  # of a header that is included by a macro
PUBLIC = ["qplan/qplan.h", "qplan/firmware.h", "qplan/camera.h", "qplan/custom_operator.h", "qplan/npu_driver.h", "qplan/signature.h"]
PRELUDE_NAME = "qplan_package.h"
PRELUDE = """\
// What qplan's own build says on the command line of the compiler. Every source of this package begins with it.
#ifndef QPLAN_PACKAGE_H_
#define QPLAN_PACKAGE_H_
#ifndef FLATBUFFERS_ASSERT
#define FLATBUFFERS_ASSERT QPLAN_FLATBUFFERS_ASSERT
#define FLATBUFFERS_ASSERT_INCLUDE "format/flatbuffers_assert.h"
#endif
// One arithmetic on every machine: no contraction of products and sums.
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#endif  // QPLAN_PACKAGE_H_
"""


class Package:
    def __init__(self, arguments):
        self.out, self.root = arguments.out, arguments.source
        self.roots = [arguments.source, *arguments.headers]
        self.version, self.arch = arguments.version, arguments.arch
        self.sources = {}  # path in the package: options
        self.written = set()

    def find(self, name, folder):
        for root in [folder, *self.roots]:
            path = os.path.join(root, name)
            if os.path.isfile(path):
                return os.path.normpath(path)
        return None  # the compiler's or the C library's

    def place(self, path):
        """Where a file of the repository, or of one of the folders of headers, goes."""
        for root in reversed(self.roots):
            if path.startswith(root + os.sep):
                return "src/" + os.path.relpath(path, root)
        raise SystemExit(f"firmware_package.py: {path} is in none of {', '.join(self.roots)}")

    def write(self, name, text):
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        self.written.add(name)

    def add_headers(self, text, folder):
        for name in INCLUDE.findall(text) + NAMED_HEADER.findall(text):
            path = self.find(name, folder)
            if path is None or name.endswith(".cc") or self.place(path) in self.written:
                continue
            content = read(path)
            self.write(self.place(path), content)
            self.add_headers(content, os.path.dirname(path))

    def with_sources_inside(self, text):
        """The text of a source with those that it includes in their places: in a package every source is compiled."""
        def content(match):
            return read(os.path.join(self.root, match.group(1))).rstrip("\n")
        return re.sub(r'^#include "([^"]+\.cc)"', content, text, flags=re.M)

    def add_source(self, path, options):
        text = self.with_sources_inside(read(path))
        if path.startswith(self.root + os.sep) and "/isa/" not in path:
            name = "src/" + os.path.relpath(path, self.root)
        else:
            name = "src/kernels/isa/" + os.path.basename(path)
        self.add_headers(text, os.path.dirname(path))
        self.write(name, f'#include "{PRELUDE_NAME}"\n{text}')
        self.sources[name] = options


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def cmake_lists(package):
    names = "\n".join(f"  {name}" for name in sorted(package.sources))
    options = "".join(f'set_source_files_properties({name} PROPERTIES COMPILE_OPTIONS "{";".join(flags)}")\n'
                      for name, flags in sorted(package.sources.items()) if flags)
    return f"""\
# The runtime of qplan {package.version} for {package.arch}: an ESP-IDF component, or a library for any other CMake project.
set(qplan_sources
{names})
if(ESP_PLATFORM)
  idf_component_register(SRCS ${{qplan_sources}} INCLUDE_DIRS src)
  set(qplan_target ${{COMPONENT_LIB}})
else()
  add_library(qplan STATIC ${{qplan_sources}})
  target_include_directories(qplan PUBLIC src)
  set(qplan_target qplan)
endif()
target_compile_features(${{qplan_target}} PRIVATE cxx_std_17)
target_compile_options(${{qplan_target}} PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics -ffp-contract=off
  -ffunction-sections -fdata-sections)
{options}"""


def zephyr_cmake(package):
    names = "\n".join(f"    ../{name}" for name in sorted(package.sources))
    options = "".join(f'  set_source_files_properties(../{name} PROPERTIES COMPILE_OPTIONS "{";".join(flags)}")\n'
                      for name, flags in sorted(package.sources.items()) if flags)
    return f"""\
if(CONFIG_QPLAN)
  zephyr_library_named(qplan)
  zephyr_library_sources(
{names})
  zephyr_include_directories(../src)
  zephyr_library_compile_options(-fno-exceptions -fno-rtti -fno-threadsafe-statics -ffp-contract=off)
  if(NOT CONFIG_QPLAN_ERROR_TEXTS)
    zephyr_library_compile_definitions(QPLAN_ERROR_TEXTS=0)
  endif()
{options}endif()
"""


KCONFIG = """\
config QPLAN
\tbool "qplan: quantised neural networks"
\tdepends on CPP
\tselect REQUIRES_FULL_LIBCPP
\thelp
\t  The runtime that executes plans of `qplan pack`, and what `qplan emit-c` writes.

config QPLAN_ERROR_TEXTS
\tbool "texts of errors"
\tdepends on QPLAN
\thelp
\t  Errors are told in words, which takes 20 KB of flash. Without them: status, step and tensor.
"""

SAMPLE_MAIN = """\
/* A model that `qplan emit-c --name model` wrote: one run on an input of zeros. */
#include <string.h>

#include "model.h"

int main(void) {
  if (model_init() != 0) return 1;
  memset(model_input(0), 0, MODEL_INPUT0_BYTES);
  if (model_run() != 0) return 1;
  return model_output(0) == 0;
}
"""
SAMPLE_CMAKE = """\
# west build -b BOARD samples/zephyr -- -DMODEL_DIR=FOLDER   (FOLDER: written by `qplan emit-c PLAN -o FOLDER --name model`)
cmake_minimum_required(VERSION 3.20)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(qplan_model LANGUAGES C CXX)
file(GLOB model ${MODEL_DIR}/*.c)
target_sources(app PRIVATE src/main.c ${model})
target_include_directories(app PRIVATE ${MODEL_DIR})
"""
SKETCH = """\
// Runs a model once per second. Put model.h and the .c files that `qplan emit-c PLAN -o FOLDER --name model` wrote beside it.
#include <qplan_runtime.h>

extern "C" {
#include "model.h"
}

void setup() { model_init(); }

void loop() {
  memset(model_input(0), 0, MODEL_INPUT0_BYTES);  // the features
  model_run();
  delay(1000);
}
"""


def arduino_properties(package):
    return f"""\
name=qplan
version={package.version}
author=qplan
maintainer=qplan
sentence=Runs quantised neural networks, exact to the bit.
paragraph=The runtime of plans that the command qplan packs ahead of time, without heap. For {package.arch}.
category=Data Processing
architectures=*
includes=qplan_runtime.h
"""


def pack_description(package):
    files = "".join(f'        <file category="source" name={xml.sax.saxutils.quoteattr(name)}/>\n'
                    for name in sorted(package.sources))
    return f"""\
<?xml version="1.0" encoding="utf-8"?>
<package schemaVersion="1.7.7" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance" xs:noNamespaceSchemaLocation="PACK.xsd">
  <vendor>qplan</vendor>
  <name>qplan</name>
  <description>Runtime of quantised neural networks</description>
  <url></url>
  <license>LICENSE</license>
  <releases>
    <release version="{package.version}">The runtime for {package.arch}.</release>
  </releases>
  <components>
    <component Cclass="Machine Learning" Cgroup="qplan" Csub="Runtime" Cversion="{package.version}">
      <description>Runs plans, and what qplan emit-c writes</description>
      <files>
        <file category="include" name="src/"/>
        <file category="header" name="src/qplan/firmware.h"/>
{files}      </files>
    </component>
  </components>
</package>
"""


README = """\
# qplan {version}: the runtime for {arch}

Sources without any dependency. Compile all .cc files under `src/` as C++17 with `-Isrc -fno-exceptions -fno-rtti
-ffp-contract=off -ffunction-sections -fdata-sections`, link with `--gc-sections`. `options.txt` names the files that are
faster with options of their own. Programs include `<qplan/firmware.h>` through what `qplan emit-c` writes, or
`<qplan/qplan.h>`.

| for | what to do |
|---|---|
| CMake | `add_subdirectory(qplan)`, `target_link_libraries(app qplan)` |
| Arduino | put the folder into `libraries/`; `examples/Model` |
| ESP-IDF | put the folder into `components/qplan` |
| Zephyr | a module: `-DZEPHYR_EXTRA_MODULES=...`, `CONFIG_QPLAN=y`; `samples/zephyr` |
| CMSIS-Pack | `qplan.qplan.pdsc` |
"""


def write_package(package, lines):
    entries = {}
    for line in lines:
        path, _, options = line.partition("\t")
        entries.setdefault(path, []).extend(options.split())
    for path, options in entries.items():
        package.add_source(path, options)
    for name in PUBLIC:
        path = package.find(name, package.root)
        package.add_headers(f"#include <{name}>\n", os.path.dirname(path))
    package.write("src/" + PRELUDE_NAME, PRELUDE)
    package.write("src/format/flatbuffers_assert.h", read(os.path.join(package.root, "format", "flatbuffers_assert.h")))
    package.write("src/qplan_runtime.h", "// For Arduino, which finds a library by a header here.\n"
                  '#include "qplan/firmware.h"\n')
    package.write("LICENSE", read(os.path.join(package.root, "LICENSE")))
    package.write("README.md", README.format(version=package.version, arch=package.arch))
    package.write("options.txt", "".join(f"{name} {' '.join(flags)}\n" for name, flags in sorted(package.sources.items()) if flags))
    package.write("CMakeLists.txt", cmake_lists(package))
    package.write("idf_component.yml", f'version: "{package.version}"\ndescription: Runtime of quantised neural networks\n')
    package.write("zephyr/module.yml", "name: qplan\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n")
    package.write("zephyr/CMakeLists.txt", zephyr_cmake(package))
    package.write("zephyr/Kconfig", KCONFIG)
    package.write("samples/zephyr/CMakeLists.txt", SAMPLE_CMAKE)
    package.write("samples/zephyr/prj.conf", "CONFIG_CPP=y\nCONFIG_STD_CPP17=y\nCONFIG_QPLAN=y\nCONFIG_FPU=y\n")
    package.write("samples/zephyr/src/main.c", SAMPLE_MAIN)
    package.write("library.properties", arduino_properties(package))
    package.write("examples/Model/Model.ino", SKETCH)
    package.write("qplan.qplan.pdsc", pack_description(package))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("list")
    parser.add_argument("out")
    parser.add_argument("--version", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--headers", nargs="+", required=True)
    arguments = parser.parse_args()
    write_package(Package(arguments), [line for line in read(arguments.list).splitlines() if line])


if __name__ == "__main__":
    sys.exit(main())
