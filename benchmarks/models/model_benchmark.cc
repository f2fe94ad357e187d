// Whole models, for benchmarks/run.sh: packs models and runs them on one thread or several, on command.
//
// One command a line on standard input, words between tabs; one line of JSON for each on standard output:
//   machine                      {"cpu", "isa", "peak_gmac_per_s", "read_gb_per_s": {"L2": ..., ...}}
//   load NAME PATH FUSE          packs the model as NAME; {"macs", "arena_bytes", "plan_bytes", "layers":
//   [text]}:
//                                its convolutions as peers/onednn_benchmark.cc reads them. FUSE: auto, off,
//                                as `qplan pack --fuse`; arena_bytes: all memory of the session
//   init NAME                    {"open_ns": [...], "init_ns": [...]}: plan and session, made again and again
//   run NAME THREADS POOL NS     runs it for NS nanoseconds at least; {"ns": [each run's time]}. POOL:
//   threads, openmp
// An error is {"error": "text"}.
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/common/packed_model.h"
#include "benchmarks/models/bandwidth.h"
#include "kernels/cpu.h"
#include "qplan/host.h"
#include "tools/reports.h"

namespace qplan::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMinRuns = 3;
constexpr size_t kWarmUpRuns = 2;
constexpr size_t kInits = 31;

void check(qplan_status status, const qplan_error& error) {
  if (status < 0) throw std::runtime_error(error.text);
}

// A session with its pool.
class Runner {
 public:
  Runner(const qplan_plan& plan, uint32_t threads, const std::string& pool) {
    if (pool == "openmp") {
      pool_ = {qplan_openmp_pool_create(threads), qplan_openmp_pool_destroy};
    } else if (threads > 1) {
      pool_ = {qplan_pool_create(threads), qplan_pool_destroy};
    }
    qplan_platform platform = {};
    platform.struct_size = sizeof platform;
    platform.thread_pool = pool_.get();
    qplan_session_config config = {};
    config.struct_size = sizeof config;
    config.kernels = qplan_kernels_all();
    config.platform = &platform;
    qplan_error error = {};
    error.struct_size = sizeof error;
    qplan_host_session* session = nullptr;
    check(qplan_host_session_create(&plan, &config, &session, &error), error);
    session_ = {session, qplan_host_session_destroy};
  }

  [[nodiscard]] qplan_session* get() const { return qplan_host_session_get(session_.get()); }
  void invoke() {
    if (qplan_session_invoke(get()) < 0) throw std::runtime_error("invoke failed");
  }

  // Floats of [-1, 1), any bytes.
  void write_inputs() {
    std::mt19937 random(1);
    DLTensor view;
    for (uint32_t i = 0; qplan_session_view(get(), QPLAN_INPUT, i, &view) >= 0; ++i) {
      int64_t elements = 1;
      for (int32_t axis = 0; axis < view.ndim; ++axis) elements *= view.shape[axis];
      auto* bytes = static_cast<uint8_t*>(view.data) + view.byte_offset;
      if (view.dtype.code == kDLFloat) {
        for (int64_t k = 0; k < elements; ++k)
          reinterpret_cast<float*>(bytes)[k] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
      } else {
        for (int64_t k = 0; k < elements * view.dtype.bits / 8; ++k)
          bytes[k] = static_cast<uint8_t>(random());
      }
    }
  }

 private:
  using Pool = std::unique_ptr<const qplan_thread_pool, void (*)(const qplan_thread_pool*)>;
  using Session = std::unique_ptr<qplan_host_session, void (*)(qplan_host_session*)>;
  Pool pool_{nullptr, qplan_pool_destroy};
  Session session_{nullptr, qplan_host_session_destroy};
};

struct Model {
  Model(const std::string& path, schedule::Fuse fuse) : packed(path, fuse) { open(); }
  void open() {
    qplan_error error = {};
    error.struct_size = sizeof error;
    check(qplan_plan_open(&plan, packed.bytes().data(), packed.bytes().size(), 0, &error), error);
  }

  PackedModel packed;
  qplan_plan plan = {};
  std::map<std::string, std::unique_ptr<Runner>> runners;  // by threads and pool
};

std::string layer_text(const Convolution& c) {
  std::ostringstream text;
  for (const int64_t value :
       {c.batch, c.input_h, c.input_w, c.input_c, c.output_h, c.output_w, c.output_c, c.kernel_h, c.kernel_w,
        c.stride_h, c.stride_w, c.dilation_h, c.dilation_w, c.pad_top, c.pad_left, c.groups}) {
    text << (text.tellp() > 0 ? " " : "") << value;
  }
  return text.str();
}

Json machine() {
  Json bandwidth;
  bandwidth["L2"] = measure_read_gb_per_s(size_t{256} << 10);
  bandwidth["L3"] = measure_read_gb_per_s(size_t{8} << 20);
  bandwidth["memory"] = measure_read_gb_per_s(size_t{256} << 20);
  Json answer;
  answer["isa"] = qplan_isa_name(cpu_best_isa());
  answer["peak_gmac_per_s"] = tools::measure_peak_gmacs(cpu_best_isa());
  answer["read_gb_per_s"] = bandwidth;
  return answer;
}

Json load(Model& model) {
  const Runner runner(model.plan, 1, "threads");
  qplan_session_info info = {};
  info.struct_size = sizeof info;
  if (qplan_session_get_info(runner.get(), &info) < 0) throw std::runtime_error("no session info");
  Json layers = Json::array();
  for (const Convolution& convolution : model.packed.convolutions())
    layers.push_back(layer_text(convolution));
  Json answer;
  answer["macs"] = info.macs;
  answer["arena_bytes"] = info.memory_bytes;
  answer["plan_bytes"] = model.packed.bytes().size();
  answer["layers"] = layers;
  return answer;
}

Json init(Model& model) {
  Json open_ns = Json::array(), init_ns = Json::array();
  for (size_t i = 0; i < kInits; ++i) {
    const uint64_t begin = qplan_host_now_ns(nullptr);
    model.open();
    const uint64_t opened = qplan_host_now_ns(nullptr);
    const Runner runner(model.plan, 1, "threads");
    open_ns.push_back(opened - begin);
    init_ns.push_back(qplan_host_now_ns(nullptr) - opened);
  }
  Json answer;
  answer["open_ns"] = open_ns;
  answer["init_ns"] = init_ns;
  return answer;
}

Json run(Runner& runner, uint64_t least_ns) {
  for (size_t i = 0; i < kWarmUpRuns; ++i) runner.invoke();
  std::vector<uint64_t> times;
  for (uint64_t total = 0; total < least_ns || times.size() < kMinRuns; total += times.back()) {
    const uint64_t begin = qplan_host_now_ns(nullptr);
    runner.invoke();
    times.push_back(qplan_host_now_ns(nullptr) - begin);
  }
  Json answer;
  answer["ns"] = times;
  return answer;
}

class Server {
 public:
  Json answer(const std::vector<std::string>& words) {
    const std::string& command = words.at(0);
    if (command == "machine") return machine();
    if (command == "load") {
      const schedule::Fuse fuse = words.at(3) == "off" ? schedule::Fuse::kOff : schedule::Fuse::kAuto;
      models_[words.at(1)] = std::make_unique<Model>(words.at(2), fuse);
      return load(model(words.at(1)));
    }
    if (command == "init") return init(model(words.at(1)));
    if (command == "run") {
      std::unique_ptr<Runner>& runner = model(words.at(1)).runners[words.at(2) + words.at(3)];
      if (runner == nullptr) {
        runner = std::make_unique<Runner>(model(words.at(1)).plan,
                                          static_cast<uint32_t>(std::stoul(words.at(2))), words.at(3));
        runner->write_inputs();
      }
      return run(*runner, std::stoull(words.at(4)));
    }
    throw std::runtime_error("unknown command '" + command + "'");
  }

 private:
  Model& model(const std::string& name) {
    const auto found = models_.find(name);
    if (found == models_.end()) throw std::runtime_error("no model '" + name + "' is loaded");
    return *found->second;
  }

  std::map<std::string, std::unique_ptr<Model>> models_;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (c == '\t') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace
}  // namespace qplan::benchmarks

int main() {
  qplan::benchmarks::Server server;
  std::string line;
  while (std::getline(std::cin, line)) {
    qplan::benchmarks::Json answer;
    try {
      answer = server.answer(qplan::benchmarks::split(line));
    } catch (const std::exception& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump(-1, ' ', false, qplan::benchmarks::Json::error_handler_t::replace) << std::endl;
  }
}
