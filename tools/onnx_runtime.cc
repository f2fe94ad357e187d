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

// Both get the model, a folder and the number of cases; case K has K_input<I>.npy, and K_output<I>.npy is
// written. Their last line of stderr says what is wrong.
constexpr const char* kPython = R"(
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
constexpr const char* kNode = R"(
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

void read_outputs(const TemporaryFolder& folder, const PlanFile& plan, std::vector<CheckCase>* cases) {
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_OUTPUT);
  for (size_t k = 0; k < cases->size(); ++k) {
    TensorBytes outputs;
    for (uint32_t i = 0; i < infos.size(); ++i) {
      const std::string path = folder.file(std::to_string(k) + "_output" + std::to_string(i) + ".npy");
      outputs.push_back(
          load_input(path, infos[i], describe(QPLAN_OUTPUT, i, infos[i]), {}, "output of ONNX Runtime"));
    }
    (*cases)[k].outputs = std::move(outputs);
  }
}

}  // namespace

bool run_onnx_runtime(const std::string& model, const PlanFile& plan, std::vector<CheckCase>* cases,
                      std::string* reason) {
  const TemporaryFolder folder;
  write_inputs(folder, plan, *cases);
  const std::string log = folder.file("log");
  const std::string absolute = std::filesystem::absolute(model).string();
  for (const auto& [program, option, script] :
       {std::tuple("python3", "-c", kPython), std::tuple("node", "-e", kNode)}) {
    std::vector<std::string> words = {program, option, script};
    if (words[0] == "node") words.emplace_back("--");
    for (const std::string& word : {absolute, folder.path(), std::to_string(cases->size())})
      words.push_back(word);
    const int status = run_program(words, log);
    if (status == -1 || status == kNotInstalled) continue;
    if (status != 0) throw Failure("ONNX Runtime ('" + model + "', " + program + "): " + last_line(log));
    read_outputs(folder, plan, cases);
    return true;
  }
  *reason =
      "ONNX Runtime is not installed; python3 needs the package onnxruntime, or node the package "
      "onnxruntime-node";
  return false;
}

}  // namespace qplan::tools
