#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "tools/check.h"
#include "tools/command.h"
#include "tools/reports.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

namespace fs = std::filesystem;

// "DIR/output0.bin" or ".npy"; "" where neither is there.
std::string tensor_file(const fs::path& directory, const std::string& stem) {
  for (const char* extension : {".bin", ".npy"}) {
    const fs::path path = directory / (stem + extension);
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path.string();
  }
  return "";
}

TensorBytes read_tensors(const fs::path& directory, const char* noun, int direction,
                         const std::vector<qplan_tensor_info>& infos) {
  TensorBytes tensors;
  for (uint32_t i = 0; i < infos.size(); ++i) {
    const std::string stem = noun + std::to_string(i), path = tensor_file(directory, stem);
    if (path.empty()) {
      throw Failure("'" + directory.string() + "': has no " + stem + ".bin or " + stem + ".npy for " +
                    describe(direction, i, infos[i]));
    }
    tensors.push_back(load_input(path, infos[i], describe(direction, i, infos[i]), {}, noun));
  }
  return tensors;
}

CheckCase read_case(const fs::path& directory, const PlanFile& plan, const TensorBytes& given) {
  const std::vector<qplan_tensor_info> inputs = tensor_infos(plan.plan(), QPLAN_INPUT);
  CheckCase result;
  result.name = directory.filename().empty() ? directory.parent_path().filename().string()
                                             : directory.filename().string();
  const bool has_inputs = inputs.empty() || !tensor_file(directory, "input0").empty();
  if (!has_inputs && given.empty()) {
    throw Failure("'" + directory.string() +
                  "': has no input0.bin or input0.npy beside its outputs; put it there or give --input");
  }
  result.inputs = given.empty() ? read_tensors(directory, "input", QPLAN_INPUT, inputs) : given;
  result.outputs = read_tensors(directory, "output", QPLAN_OUTPUT, tensor_infos(plan.plan(), QPLAN_OUTPUT));
  return result;
}

}  // namespace

std::vector<CheckCase> expected_cases(const std::string& directory, const PlanFile& plan,
                                      const TensorBytes& given) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) throw Failure("--expect '" + directory + "': is not a directory");
  if (!tensor_file(directory, "output0").empty()) return {read_case(directory, plan, given)};
  std::vector<fs::path> below;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (!tensor_file(entry.path(), "output0").empty()) below.push_back(entry.path());
  }
  if (below.empty()) {
    throw Failure("--expect '" + directory +
                  "': neither it nor a directory in it has output0.bin or output0.npy");
  }
  std::ranges::sort(below);
  std::vector<CheckCase> cases;
  for (const fs::path& path : below) cases.push_back(read_case(path, plan, given));
  if (inspect_plan(plan).at("states").empty()) return cases;
  for (size_t i = 1; i < cases.size(); ++i)
    cases[i].previous = std::make_shared<const CheckCase>(cases[i - 1]);
  return cases;
}

std::vector<const CheckCase*> runs_before(const CheckCase& run) {
  std::vector<const CheckCase*> runs;
  for (const CheckCase* at = run.previous.get(); at != nullptr; at = at->previous.get()) runs.push_back(at);
  std::ranges::reverse(runs);
  return runs;
}

namespace {

// The session of a side, whose runs follow each other.
class SideSession {
 public:
  SideSession(const CheckSide& side, bool with_tensors)
      : inputs_(tensor_infos(side.plan->plan(), QPLAN_INPUT)),
        outputs_(tensor_infos(side.plan->plan(), QPLAN_OUTPUT)),
        platform_(make_platform(QPLAN_LOG_WARNING)) {
    if (with_tensors) tensors_.attach(platform_);
    session_ = std::make_unique<Session>(*side.plan, side.options, &platform_);
    tensors_.watch(session_->get());
  }

  void invoke(const TensorBytes& inputs) {
    tensors_.clear();
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      std::vector<uint8_t> bytes = inputs[i];
      session_->write(i, packed_tensor(inputs_[i], bytes.data()));
    }
    session_->invoke();
  }
  // Those of the last run.
  TensorBytes outputs() {
    TensorBytes outputs;
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      outputs.emplace_back(outputs_[i].size_bytes);
      session_->read(i, packed_tensor(outputs_[i], outputs.back().data()));
    }
    return outputs;
  }
  [[nodiscard]] const std::vector<StepTensor>& tensors() const { return tensors_.tensors(); }
  void close() { session_->close(); }

 private:
  const std::vector<qplan_tensor_info> inputs_, outputs_;
  qplan_platform platform_;  // these two outlive the session
  StepTensors tensors_;
  std::unique_ptr<Session> session_;
};

}  // namespace

CheckRun run_check_side(const CheckSide& side, const CheckCase& inputs, bool with_tensors) {
  SideSession session(side, with_tensors);
  for (const CheckCase* earlier : runs_before(inputs)) session.invoke(earlier->inputs);
  session.invoke(inputs.inputs);
  CheckRun run;
  run.outputs = session.outputs();
  run.tensors = session.tensors();
  session.close();
  return run;
}

std::span<const CheckCase> cases_of_session(std::span<const CheckCase> cases, size_t at) {
  size_t begin = at, end = at + 1;
  while (begin > 0 && cases[begin].previous != nullptr) --begin;
  while (end < cases.size() && cases[end].previous != nullptr) ++end;
  return cases.subspan(begin, end - begin);
}

std::vector<TensorBytes> run_check_cases(const CheckSide& side, std::span<const CheckCase> cases,
                                         const std::function<void()>& before_each) {
  std::vector<TensorBytes> outputs;
  std::unique_ptr<SideSession> session;
  for (const CheckCase& inputs : cases) {
    before_each();
    if (session == nullptr || inputs.previous == nullptr) {
      if (session != nullptr) session->close();
      session.reset();  // a device may have one session
      session = std::make_unique<SideSession>(side, false);
      for (const CheckCase* earlier : runs_before(inputs)) session->invoke(earlier->inputs);
    }
    session->invoke(inputs.inputs);
    outputs.push_back(session->outputs());
  }
  if (session != nullptr) session->close();
  return outputs;
}

// ---- how far tensors are from each other

namespace {

constexpr uint64_t kNotComparable = UINT64_MAX;

// Floats in the order of their values as integers without gaps: -0 and 0 are one number.
template <typename Float, typename Bits>
Bits ordered_bits(const void* bytes, uint64_t index) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char*>(bytes) + index * sizeof(Float), sizeof bits);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  return (bits & kSign) != 0 ? kSign - (bits & ~kSign) : kSign + bits;
}

template <typename Float, typename Bits>
uint64_t float_steps(const void* expected, const void* found, uint64_t index) {
  Float a, b;
  std::memcpy(&a, static_cast<const char*>(expected) + index * sizeof a, sizeof a);
  std::memcpy(&b, static_cast<const char*>(found) + index * sizeof b, sizeof b);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 1 : kNotComparable;
  const Bits p = ordered_bits<Float, Bits>(expected, index), q = ordered_bits<Float, Bits>(found, index);
  return std::max<uint64_t>(p > q ? p - q : q - p, 1);  // the bytes differ
}

// The distance of two elements whose bytes differ.
uint64_t steps_between(const qplan_tensor_info& info, const void* expected, const void* found,
                       uint64_t index) {
  if (is_type(info.dtype, kDLFloat, 32)) return float_steps<float, uint32_t>(expected, found, index);
  if (is_type(info.dtype, kDLFloat, 64)) return float_steps<double, uint64_t>(expected, found, index);
  const auto a = element(info, expected, index), b = element(info, found, index);
  if (!a || !b) return 1;
  return std::max<uint64_t>(static_cast<uint64_t>(std::fabs(*a - *b)), 1);
}

uint64_t bucket_of(uint64_t steps) {
  if (steps <= 2 || steps == kNotComparable) return steps;
  uint64_t low = 3;  // 3..4, 5..8, 9..16
  while (low <= UINT64_MAX / 4 && steps > 2 * (low - 1)) low = 2 * (low - 1) + 1;
  return low;
}

std::string bucket_text(uint64_t low) {
  if (low == kNotComparable) return "NaN";
  return low <= 2 ? std::to_string(low) : std::to_string(low) + ".." + std::to_string(2 * (low - 1));
}

// count of a row without a number.
uint64_t best_of_row(const qplan_tensor_info& info, const void* bytes, uint64_t begin, uint64_t count) {
  uint64_t best = count;
  double score = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double value = real_value(info, bytes, begin + i).value_or(NAN);
    if (value > score || (best == count && !std::isnan(value))) {
      score = value;
      best = i;
    }
  }
  return best;
}

void compare_rows(const qplan_tensor_info& info, const void* expected, const void* found,
                  TensorComparison* result) {
  const auto scores = info.ndim == 0 ? uint64_t{1} : static_cast<uint64_t>(info.shape[info.ndim - 1]);
  if (scores < 2) return;
  result->rows = result->elements / scores;
  for (uint64_t row = 0; row < result->rows; ++row) {
    const uint64_t begin = row * scores;
    result->same_top1 +=
        best_of_row(info, expected, begin, scores) == best_of_row(info, found, begin, scores) ? 1 : 0;
  }
}

}  // namespace

TensorComparison compare_tensors(const qplan_tensor_info& info, const void* expected, const void* found) {
  TensorComparison result;
  result.elements = element_count(info);
  if (std::memcmp(expected, found, info.size_bytes) == 0) {
    compare_rows(info, expected, expected, &result);
    return result;
  }
  const size_t width = info.size_bytes / std::max<uint64_t>(result.elements, 1);
  double signal = 0, noise = 0;
  for (uint64_t i = 0; i < result.elements; ++i) {
    const double a = real_value(info, expected, i).value_or(0), b = real_value(info, found, i).value_or(0);
    signal += a * a;
    if (std::memcmp(static_cast<const char*>(expected) + i * width,
                    static_cast<const char*>(found) + i * width, width) == 0) {
      continue;
    }
    noise += (a - b) * (a - b);
    const uint64_t steps = steps_between(info, expected, found, i);
    if (result.different++ == 0) result.first_different = i;
    result.max_steps = std::max(result.max_steps, steps);
    ++result.histogram[bucket_of(steps)];
  }
  if (signal > 0 && noise > 0 && std::isfinite(signal) && std::isfinite(noise))
    result.snr_db = 10 * std::log10(signal / noise);
  compare_rows(info, expected, found, &result);
  return result;
}

std::string comparison_text(const TensorComparison& comparison) {
  if (comparison.equal()) return "equal, " + count_text(comparison.elements, "element", "elements");
  std::string text = grouped(comparison.different) + " of " +
                     count_text(comparison.elements, "element", "elements") +
                     (comparison.different == 1 ? " differs" : " differ") + ", by ";
  bool is_first = true;
  for (const auto& [low, count] : comparison.histogram) {
    text += (is_first ? "" : ", ") + bucket_text(low) + " (" + grouped(count) + ")";
    is_first = false;
  }
  text += " steps";
  if (comparison.snr_db) {
    char number[32];
    std::snprintf(number, sizeof number, "%.1f", *comparison.snr_db);
    text += "; SNR " + std::string(number) + " dB";
  }
  if (comparison.rows == 1) {
    text += comparison.same_top1 == 1 ? "; top-1 the same" : "; top-1 another";
  } else if (comparison.rows > 1) {
    text +=
        "; top-1 the same in " + grouped(comparison.same_top1) + " of " + grouped(comparison.rows) + " rows";
  }
  return text;
}

nlohmann::ordered_json comparison_json(const TensorComparison& comparison) {
  nlohmann::ordered_json json;
  json["equal"] = comparison.equal();
  json["elements"] = comparison.elements;
  json["different"] = comparison.different;
  json["max_steps"] = comparison.max_steps;
  json["first_different"] =
      comparison.equal() ? nlohmann::ordered_json() : nlohmann::ordered_json(comparison.first_different);
  json["histogram"] = nlohmann::ordered_json::object();
  for (const auto& [low, count] : comparison.histogram) json["histogram"][bucket_text(low)] = count;
  json["snr_db"] = comparison.snr_db ? nlohmann::ordered_json(*comparison.snr_db) : nlohmann::ordered_json();
  json["rows"] = comparison.rows;
  json["same_top1"] = comparison.same_top1;
  return json;
}

}  // namespace qplan::tools
