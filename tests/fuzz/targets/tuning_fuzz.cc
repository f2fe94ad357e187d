// What the packer's C API does with a plan: qplan_tuning_space, qplan_reschedule with what it answered and
// with the text after the plan, qplan_inspect_json, qplan_disassemble. A rescheduled plan opens.
#include <cstdint>
#include <string>
#include <vector>

#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/plan_mutator.h"

namespace qplan::testing {
namespace {

void append(void* user, const char* text, size_t size) {
  static_cast<std::string*>(user)->append(text, size);
}

qplan_error new_error() {
  qplan_error error{};
  error.struct_size = sizeof(error);
  return error;
}

void expect_explained(qplan_status status, const qplan_error& error) {
  if (status == QPLAN_OK) return;
  FUZZ_CHECK(status != QPLAN_INTERNAL, "%s", error.text);
  FUZZ_CHECK(status < 0 && error.status == status, "status %d, error.status %d", status, error.status);
  FUZZ_CHECK(error.text[0] != '\0', "no text for %s", qplan_status_name(status));
  for (const char* c = error.text; *c != '\0'; ++c) {
    FUZZ_CHECK(static_cast<unsigned char>(*c) >= 0x20, "a control character in: %s", error.text);
  }
}

// schedules: of all steps. The plan that comes of it is one.
void reschedule(const GuardedMemory& bytes, const std::string& schedules) {
  std::string plan_bytes;
  qplan_error error = new_error();
  const qplan_status status =
      qplan_reschedule(bytes.data(), bytes.size(), schedules.c_str(), append, &plan_bytes, &error);
  expect_explained(status, error);
  if (status != QPLAN_OK) {
    FUZZ_CHECK(plan_bytes.empty(), "an error, but %zu bytes were written", plan_bytes.size());
    return;
  }
  const GuardedMemory copy(plan_bytes.size(), 64, true, 0);
  std::memcpy(copy.data(), plan_bytes.data(), plan_bytes.size());
  qplan_plan plan;
  error = new_error();
  const qplan_status opened = qplan_plan_open(&plan, copy.data(), copy.size(), QPLAN_PLAN_DIGEST, &error);
  FUZZ_CHECK(opened == QPLAN_OK, "the rescheduled plan does not open: %s", error.text);
}

void run_plan(const uint8_t* data, size_t size) {
  const PlanInput input(data, size);
  const GuardedMemory bytes(input.plan.size(), 64, true, 0);
  if (!input.plan.empty()) std::memcpy(bytes.data(), input.plan.data(), input.plan.size());

  qplan_plan plan;
  qplan_error error = new_error();
  const bool opens =
      qplan_plan_open(&plan, bytes.data(), bytes.size(), QPLAN_PLAN_DIGEST, &error) == QPLAN_OK;
  std::string json, listing, space;
  error = new_error();
  const qplan_status inspected = qplan_inspect_json(bytes.data(), bytes.size(), append, &json, &error);
  expect_explained(inspected, error);
  FUZZ_CHECK(!opens || inspected == QPLAN_OK, "it opens, but inspect says: %s", error.text);
  error = new_error();
  const qplan_status listed = qplan_disassemble(bytes.data(), bytes.size(), append, &listing, &error);
  expect_explained(listed, error);
  FUZZ_CHECK(!opens || listed == QPLAN_OK, "it opens, but disassemble says: %s", error.text);

  InputTail tail(input.tail.data(), input.tail.size());
  const uint8_t threads = tail.byte();
  error = new_error();
  const qplan_status tuned =
      qplan_tuning_space(bytes.data(), bytes.size(), (threads & 128) != 0 ? QPLAN_ISA_AVX2 : 0, threads % 9,
                         append, &space, &error);
  expect_explained(tuned, error);
  // The first candidate of every step, a schedule for each: what the tuner itself would write.
  if (tuned == QPLAN_OK) {
    std::string schedules = "[";
    const size_t at = space.find("\"num_steps\":");
    const unsigned long num_steps =
        at == std::string::npos ? 0 : std::strtoul(space.c_str() + at + 12, nullptr, 10);
    for (unsigned long i = 0; i < num_steps && i < 4096; ++i) schedules += i == 0 ? "{}" : ",{}";
    reschedule(bytes, schedules + "]");
  }
  reschedule(bytes, std::string(reinterpret_cast<const char*>(tail.data()), tail.size()));
}

// Half of the time the plan is changed, else the schedules.
size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Random random(seed);
  if (random.chance(0.6)) return PlanMutator(seed).run(data, size, max_size);
  PlanInput input(data, size);
  static const char* const kTexts[] = {"[{}]",
                                       "[null]",
                                       "[{\"block_pixels\": 24}]",
                                       "[{\"isa\": \"avx2\"}]",
                                       "{}",
                                       "[[]]",
                                       "[{\"block_pixels\": 1e99}]",
                                       "[{},{},{},{}]",
                                       "[{\"x\": \"\\u0000\"}]"};
  std::vector<uint8_t>& tail = input.tail;
  if (tail.empty() || random.chance(0.2)) {
    const std::string text = kTexts[random.integer(0, static_cast<int64_t>(std::size(kTexts)) - 1)];
    tail.assign(text.begin(), text.end());
    tail.push_back(static_cast<uint8_t>(random.integer(0, 255)));
  } else {
    const size_t old = tail.size();
    tail.resize(old + 64);
    tail.resize(LLVMFuzzerMutate(tail.data(), old, tail.size()));
  }
  if (input.plan.size() + tail.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(tail.begin(), tail.end(), data + input.plan.size());
  return input.plan.size() + tail.size();
}

}  // namespace
}  // namespace qplan::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qplan::testing::run_plan(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::testing::mutate(data, size, max_size, seed);
}
