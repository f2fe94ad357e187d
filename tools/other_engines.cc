#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>

#include "tools/check.h"
#include "tools/command.h"
#include "tools/tensor.h"

extern char** environ;

namespace qplan::tools {
namespace {

constexpr int kNotInstalled = 77;  // the exit status of the scripts where the package is missing

// All get the model, a folder and the number of cases; case K has K_input<I>.npy, and K_output<I>.npy is
// written. Their last line of stderr says what is wrong.
constexpr const char* kOnnxRuntimeInPython = R"(
import sys
try:
    import numpy, onnxruntime
except ImportError:
    sys.exit(77)
model, folder, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
onnxruntime.set_default_logger_severity(3)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
names = [value.name for value in session.get_inputs()]
for case in range(cases):
    inputs = {name: numpy.load(f"{folder}/{case}_input{i}.npy") for i, name in enumerate(names)}
    for i, output in enumerate(session.run(None, inputs)):
        numpy.save(f"{folder}/{case}_output{i}.npy", numpy.ascontiguousarray(output))
)";
constexpr const char* kOnnxRuntimeInNode = R"(
let ort;
try { ort = require("onnxruntime-node"); } catch { process.exit(77); }
const fs = require("fs");
const [model, folder, cases] = process.argv.slice(1);
const types = {"|b1": ["bool", Uint8Array], "|i1": ["int8", Int8Array], "|u1": ["uint8", Uint8Array], 
               "<i2": ["int16", Int16Array], "<i4": ["int32", Int32Array], "<i8": ["int64", BigInt64Array], "<f4": ["float32", Float32Array]};
function load(path) {
  const file = fs.readFileSync(path), begin = 10 + file.readUInt16LE(8), header = file.toString("latin1", 10, begin);
  const [type, Data] = types[header.match(/'descr': '([^']*)'/)[1]];
  const shape = header.match(/'shape': \(([^)]*)\)/)[1].split(",").map((n) => n.trim()).filter(Boolean).map(Number);
  const bytes = new Uint8Array(file.subarray(begin)).buffer;
  return new ort.Tensor(type, new Data(bytes), shape);
}
function save(path, tensor) {
  const descr = Object.keys(types).find((key) => types[key][0] === tensor.type);
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${tensor.dims.map((n) => n + ", ").join("")}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const before = Buffer.from("\x93NUMPY\x01\x00\x00\x00", "latin1");
  before.writeUInt16LE(header.length, 8);
  const data = tensor.data;
  fs.writeFileSync(path, Buffer.concat([before, Buffer.from(header, "latin1"),
                                        Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}
(async () => {
  const session = await ort.InferenceSession.create(model, {logSeverityLevel: 3});
  for (let k = 0; k < Number(cases); k++) {
    const inputs = Object.fromEntries(session.inputNames.map((name, i) => [name, load(`${folder}/${k}_input${i}.npy`)]));
    const outputs = await session.run(inputs);
    session.outputNames.forEach((name, i) => save(`${folder}/${k}_output${i}.npy`, outputs[name]));
  }
})().catch((error) => { console.error(error.message); process.exit(1); });
)";

// The packages' reference kernels, which are the arithmetic that plans have; the C library chooses its own.
constexpr const char* kTfliteInPython = R"(
import ctypes, importlib, os, sys
try:
    import numpy
except ImportError:
    sys.exit(77)
model, folder, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])

def package():
    for name in ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        kinds = getattr(module, "OpResolverType", None) or module.experimental.OpResolverType
        return lambda: module.Interpreter(model, experimental_op_resolver_type=kinds.BUILTIN_REF)
    return None

class Interpreter:
    """The C API with the methods of the packages."""
    TYPES = {1: "f4", 2: "i4", 3: "u1", 4: "i8", 6: "?", 7: "i2", 9: "i1", 10: "f2", 11: "f8", 13: "u8", 15: "u4", 16: "u2"}
    def __init__(self, library):
        def call(name, result, *arguments):
            function = getattr(library, "TfLite" + name)
            function.restype = result
            return function(*arguments)
        self.call, p = call, ctypes.c_void_p
        self.model = p(call("ModelCreateFromFile", p, os.fsencode(model)))
        options = p(call("InterpreterOptionsCreate", p))
        self.interpreter = p(call("InterpreterCreate", p, self.model, options)) if self.model else None
        if not self.interpreter:
            sys.exit("the library refuses the model")
    def checked(self, name, *arguments):
        if self.call(name, ctypes.c_int, *arguments) != 0:
            sys.exit(name + " failed")
    def allocate_tensors(self):
        self.checked("InterpreterAllocateTensors", self.interpreter)
    def invoke(self):
        self.checked("InterpreterInvoke", self.interpreter)
    def details(self, kind):
        count = self.call(f"InterpreterGet{kind}TensorCount", ctypes.c_int, self.interpreter)
        return [{"index": ctypes.c_void_p(self.call(f"InterpreterGet{kind}Tensor", ctypes.c_void_p, self.interpreter, i))}
                for i in range(count)]
    def get_input_details(self):
        return self.details("Input")
    def get_output_details(self):
        return self.details("Output")
    def set_tensor(self, tensor, array):
        array = numpy.ascontiguousarray(array)
        self.checked("TensorCopyFromBuffer", tensor, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
    def get_tensor(self, tensor):
        rank = self.call("TensorNumDims", ctypes.c_int, tensor)
        shape = [self.call("TensorDim", ctypes.c_int, tensor, i) for i in range(rank)]
        array = numpy.empty(shape, self.TYPES[self.call("TensorType", ctypes.c_int, tensor)])
        self.checked("TensorCopyToBuffer", tensor, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return array

make = package()
if make is None:
    try:
        library = ctypes.CDLL(os.environ.get("QPLAN_TFLITE", "libtensorflowlite_c.so"))
    except OSError:
        sys.exit(77)
    make = lambda: Interpreter(library)
for case in range(cases):
    interpreter = make()
    interpreter.allocate_tensors()
    for i, tensor in enumerate(interpreter.get_input_details()):
        interpreter.set_tensor(tensor["index"], numpy.load(f"{folder}/{case}_input{i}.npy"))
    interpreter.invoke()
    for i, tensor in enumerate(interpreter.get_output_details()):
        numpy.save(f"{folder}/{case}_output{i}.npy", interpreter.get_tensor(tensor["index"]))
)";

struct Script {
  const char* program;
  const char* option;
  const char* text;
};
struct EngineScripts {
  const char* name;
  std::vector<Script> scripts;  // the first whose package is installed
  const char* what_it_needs;
};

const EngineScripts& scripts_of(Engine engine) {
  static const EngineScripts kOnnxRuntime = {
      "ONNX Runtime",
      {{"python3", "-c", kOnnxRuntimeInPython}, {"node", "-e", kOnnxRuntimeInNode}},
      "python3 needs the package onnxruntime, or node the package onnxruntime-node"};
  static const EngineScripts kTflite = {
      "TensorFlow Lite",
      {{"python3", "-c", kTfliteInPython}},
      "python3 needs numpy and one of the packages ai-edge-litert, tflite-runtime and tensorflow, or "
      "QPLAN_TFLITE must name libtensorflowlite_c.so"};
  return engine == Engine::kOnnxRuntime ? kOnnxRuntime : kTflite;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "qplan_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Failure("'" + name + "': " + std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The exit status; -1 where the program is not there. stderr goes into a file.
int run_program(const std::vector<std::string>& words, const std::string& stderr_path) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, stderr_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return 1;
  return WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status);
}

std::string last_line(const std::string& path) {
  const std::vector<uint8_t> bytes = read_file(path, "log", {.bytes = 1 << 20, .expected = "expected less"});
  const std::vector<std::string> lines = split_lines(std::string(bytes.begin(), bytes.end()));
  for (size_t i = lines.size(); i-- > 0;) {
    if (lines[i].find_first_not_of(" \t") != std::string::npos) return lines[i];
  }
  return "no text";
}

void write_inputs(const TemporaryFolder& folder, const PlanFile& plan, const std::vector<CheckCase>& cases) {
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  for (size_t k = 0; k < cases.size(); ++k) {
    for (size_t i = 0; i < infos.size(); ++i) {
      const std::string path = folder.file(std::to_string(k) + "_input" + std::to_string(i) + ".npy");
      const std::string file = npy_file(infos[i], cases[k].inputs[i].data());
      qplan_error error = make_error();
      check(qplan_file_write(path.c_str(), file.data(), file.size(), &error), error, "");
    }
  }
}

void read_outputs(const TemporaryFolder& folder, const PlanFile& plan, const char* engine,
                  std::vector<CheckCase>* cases) {
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_OUTPUT);
  for (size_t k = 0; k < cases->size(); ++k) {
    TensorBytes outputs;
    for (uint32_t i = 0; i < infos.size(); ++i) {
      const std::string path = folder.file(std::to_string(k) + "_output" + std::to_string(i) + ".npy");
      outputs.push_back(load_input(path, infos[i], describe(QPLAN_OUTPUT, i, infos[i]), {},
                                   std::string("output of ") + engine));
    }
    (*cases)[k].outputs = std::move(outputs);
  }
}

}  // namespace

bool run_engine(Engine engine, const std::string& model, const PlanFile& plan, std::vector<CheckCase>* cases,
                std::string* reason) {
  const EngineScripts& scripts = scripts_of(engine);
  const TemporaryFolder folder;
  write_inputs(folder, plan, *cases);
  const std::string log = folder.file("log");
  const std::string absolute = std::filesystem::absolute(model).string();
  for (const Script& script : scripts.scripts) {
    std::vector<std::string> words = {script.program, script.option, script.text};
    if (words[0] == "node") words.emplace_back("--");
    for (const std::string& word : {absolute, folder.path(), std::to_string(cases->size())})
      words.push_back(word);
    const int status = run_program(words, log);
    if (status == -1 || status == kNotInstalled) continue;
    if (status != 0)
      throw Failure(std::string(scripts.name) + " ('" + model + "', " + script.program +
                    "): " + last_line(log));
    read_outputs(folder, plan, scripts.name, cases);
    return true;
  }
  *reason = std::string(scripts.name) + " is not installed; " + scripts.what_it_needs;
  return false;
}

}  // namespace qplan::tools
