// Tuning logs: what a pack makes of them, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/schedule/schedule.h"
#include "tests/models/model_session.h"
#include "tests/support/random.h"

namespace qplan::schedule::tuning_test {
namespace {

using Json = nlohmann::ordered_json;

std::vector<uint8_t> digits_model() {
  std::ifstream file("samples/models/digits.tflite", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<uint8_t> bytes_of(const AlignedBytes& plan) { return {plan.data(), plan.data() + plan.size()}; }

// Warnings of packing the digits model with the log go to *warnings.
AlignedBytes pack_digits(const std::string& log, uint32_t num_threads = 1,
                         std::vector<std::string>* warnings = nullptr) {
  PackOptions options;
  if (!log.empty()) options.tuning = {"t.jsonl", log, num_threads};
  options.log = [&](uint32_t level, const std::string& text) {
    if (level <= QPLAN_LOG_WARNING && warnings != nullptr) warnings->push_back(text);
  };
  return pack(digits_model(), "digits.tflite", options);
}

// The steps of the digits model that have knobs, by family.
Json space_of(const AlignedBytes& plan, uint32_t num_threads = 1) {
  const inspect::PlanReader reader(plan.span());
  return Json::parse(tuning_space(reader.view(), QPLAN_ISA_AUTO, num_threads));
}

std::string key_of(const std::string& op) {
  const AlignedBytes plan = pack_digits("");
  const Json space = space_of(plan);
  for (const Json& step : space.at("steps")) {
    const auto key = step.at("key").get<std::string>();
    if (key.rfind(op + " ", 0) == 0) return key;
  }
  return "";
}

std::string line(const std::string& key, const Json& schedule, uint64_t ns, uint32_t num_threads = 1) {
  Json json;
  json["key"] = key;
  json["schedule"] = schedule;
  json["threads"] = num_threads;
  json["ns"] = ns;
  return json.dump() + "\n";
}

Json first_schedule(const AlignedBytes& plan, const std::string& op) {
  const inspect::PlanReader reader(plan.span());
  const Json report = Json::parse(inspect::inspect_json(reader.view()));
  for (const Json& step : report.at("steps")) {
    if (step.at("op") == op) return step.at("schedule");
  }
  return {};
}

TEST(Tuning, TakesTheFastestAndTheFirstOfEqualOnes) {
  const std::string key = key_of("conv2d");
  ASSERT_NE(key, "");
  const AlignedBytes plan =
      pack_digits(line(key, Json::object(), 900) + "\n" + line(key, {{"block_pixels", 96}}, 700) +
                  line(key, {{"block_pixels", 24}, {"isa", "avx2"}}, 700) +
                  line(key, {{"block_pixels", 48}}, 800) + line("another", {{"x", 1}}, 1));
  EXPECT_EQ(first_schedule(plan, "conv2d"), Json({{"block_pixels", 96}}));
}

std::string refusal(const std::string& log, uint32_t num_threads = 1) {
  try {
    pack_digits(log, num_threads);
    return "packed";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    return error.what();
  }
}

TEST(Tuning, ALogThatFitsNothingIsAnError) {
  const std::string other = line("conv2d {} of another model", {{"block_pixels", 24}}, 1);
  EXPECT_EQ(refusal(other + other),
            "tuning 't.jsonl': no line (of 2) fits a step of this model for this target; measure it "
            "with 'qplan "
            "tune' and the same options");
  EXPECT_EQ(refusal(line(key_of("conv2d"), Json::object(), 1, 2)),
            "tuning 't.jsonl': no line (of 1) was measured with 1 thread, the number that is wanted "
            "(--tuning-threads)");
  EXPECT_EQ(refusal("\n"), "tuning 't.jsonl': has no measurements");
  EXPECT_EQ(refusal(other + line(key_of("conv2d"), Json::object(), 1)), "packed");
  // A copy is in every model, and has one schedule.
  const std::string copy = line(key_of("copy"), Json::object(), 1);
  EXPECT_EQ(refusal(other + copy),
            "tuning 't.jsonl': no line (of 2) for a step with a choice fits a step of this model for this "
            "target; measure it with 'qplan tune' and the same options");
  EXPECT_EQ(refusal(copy), "packed");
}

std::string heat(const std::string& key, const Json& schedule, uint64_t ns) {
  Json json = Json::parse(line(key, schedule, ns));
  json["stage"] = "heat";
  return json.dump() + "\n";
}

TEST(Tuning, HeatsCountOnlyWhereNothingElseWasMeasured) {
  const std::string key = key_of("conv2d");
  const std::string heats = heat(key, {{"block_pixels", 24}}, 10) + heat(key, {{"block_pixels", 48}}, 5);
  EXPECT_EQ(first_schedule(pack_digits(heats), "conv2d"), Json({{"block_pixels", 48}}));
  EXPECT_EQ(first_schedule(pack_digits(heats + line(key, {{"block_pixels", 96}}, 20)), "conv2d"),
            Json({{"block_pixels", 96}}));
}

TEST(Tuning, WithoutALineForTheStepNothingChanges) {
  const AlignedBytes plain = pack_digits("");
  EXPECT_EQ(bytes_of(plain),
            bytes_of(pack_digits(line("conv2d {} of another model", {{"block_pixels", 24}}, 1) +
                                 line(key_of("conv2d"), Json::object(), 1))));
  EXPECT_EQ(first_schedule(plain, "conv2d"), Json::object());
}

TEST(Tuning, CountsLinesOfTheWantedNumberOfThreadsAlone) {
  const std::string key = key_of("conv2d");
  const std::string log =
      line(key, {{"block_pixels", 24}}, 100, 2) + line(key, {{"block_pixels", 96}}, 200, 1);
  EXPECT_EQ(first_schedule(pack_digits(log, 1), "conv2d"), Json({{"block_pixels", 96}}));
  EXPECT_EQ(first_schedule(pack_digits(log, 2), "conv2d"), Json({{"block_pixels", 24}}));
}

// Packers on x86-64 ask their own kernels about layers in other layouts. Keys have the layouts of the plan.
TEST(Tuning, LogsOfPlansForAnotherArchitectureFitEachStep) {
  const Json reference = {{"isa", "reference"}};
  for (const Fuse fuse : {Fuse::kOff, Fuse::kAll}) {
    PackOptions options;
    options.target = "cpu,arch=aarch64,isa=i8mm";
    options.fuse = fuse;
    const AlignedBytes plan = pack(digits_model(), "digits.tflite", options);
    const Json space = space_of(plan);
    std::string log;
    for (const Json& step : space.at("steps")) log += line(step.at("key"), reference, 1);
    EXPECT_NE(log.find("=o16r8"), std::string::npos) << log;  // a layout that only kernels of I8MM read
    options.tuning = {"t.jsonl", log, 1};
    const AlignedBytes tuned = pack(digits_model(), "digits.tflite", options);
    const inspect::PlanReader reader(tuned.span());
    const Json report = Json::parse(inspect::inspect_json(reader.view()));
    for (const Json& step : report.at("steps")) EXPECT_EQ(step.at("schedule"), reference) << step;
  }
}

TEST(Tuning, TheSameLogGivesTheSameBytes) {
  const std::string log = line(key_of("conv2d"), {{"channel_groups", 2}, {"groups_outer", 1}}, 100);
  const AlignedBytes plan = pack_digits(log);
  EXPECT_EQ(bytes_of(plan), bytes_of(pack_digits(log)));
  EXPECT_NE(bytes_of(plan), bytes_of(pack_digits("")));
}

TEST(Tuning, PassesOverWhatItDoesNotKnowWithAWarning) {
  const std::string key = key_of("conv2d");
  std::vector<std::string> warnings;
  const AlignedBytes plan = pack_digits(line(key, {{"warp", 32}}, 1) + line(key, {{"block_pixels", 25}}, 2) +
                                            line(key, {{"isa", "mmx"}}, 3) + line(key, {{"grain", 3}}, 4) +
                                            line(key, {{"block_pixels", 24}}, 5),
                                        1, &warnings);
  EXPECT_EQ(first_schedule(plan, "conv2d"), Json({{"block_pixels", 24}}));
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_EQ(
      warnings[0],
      "tuning 't.jsonl' line 1: conv2d has no knob 'warp', only isa, grain, block_pixels, channel_groups, "
      "groups_outer; the line is passed over");
  EXPECT_EQ(warnings[1],
            "tuning 't.jsonl' line 2: knob 'block_pixels' of conv2d has no value 25, only 24, 48, 96, 192; "
            "the line is "
            "passed over");
  EXPECT_EQ(warnings[2],
            "tuning 't.jsonl' line 3: isa \"mmx\" is not an instruction set; the line is passed over");
  EXPECT_EQ(warnings[3],
            "tuning 't.jsonl' line 4: grain 3 is not one of 0.25, 0.5, 1, 2, 4; the line is passed over");
}

TEST(Tuning, PassesOverTornLinesWithAWarning) {
  const std::string good = line(key_of("conv2d"), {{"block_pixels", 24}}, 5);
  std::vector<std::string> warnings;
  const AlignedBytes plan = pack_digits("{\"key\": \n" + good + good.substr(0, 20), 1, &warnings);
  EXPECT_EQ(first_schedule(plan, "conv2d"), Json({{"block_pixels", 24}}));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "tuning 't.jsonl' line 1: is not JSON (byte 9); the line is passed over");
  EXPECT_EQ(warnings[1].find("tuning 't.jsonl' line 3: is not JSON (byte "), 0u) << warnings[1];
  try {
    pack_digits("\n" + good.substr(0, 20));
    ADD_FAILURE() << "no line can be read";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("tuning 't.jsonl' line 2: is not JSON"), std::string::npos);
  }
}

TEST(Tuning, RefusesMalformedLinesWithTheirNumber) {
  const std::string good = line("k", Json::object(), 1);
  const std::pair<const char*, const char*> wrong[] = {
      {"{\"key\": 1e999}", "has a number that no double holds"},
      {"[1]", "is not a JSON object"},
      {"{\"schedule\": {}, \"threads\": 1, \"ns\": 1}", "has no 'key'"},
      {"{\"key\": 1, \"schedule\": {}, \"threads\": 1, \"ns\": 1}", "'key' is not a text"},
      {"{\"key\": \"k\", \"schedule\": [], \"threads\": 1, \"ns\": 1}", "'schedule' is not an object"},
      {"{\"key\": \"k\", \"schedule\": {}, \"threads\": 0, \"ns\": 1}", "'threads' is not a number from 1"},
      {"{\"key\": \"k\", \"schedule\": {}, \"threads\": 1, \"ns\": -1}", "'ns' is not a whole number"},
  };
  for (const auto& [text, reason] : wrong) {
    try {
      pack_digits(good + "\n" + text);
      ADD_FAILURE() << text;
    } catch (const PackError& error) {
      EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find("tuning 't.jsonl' line 3: "), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

// Keeping a line copies it, and copying recurses: brackets alone would use up the stack.
TEST(Tuning, RefusesLinesThatNestTooDeeply) {
  const std::string brackets = std::string(200'000, '[') + std::string(200'000, ']');
  try {
    pack_digits("{\"key\": \"k\", \"schedule\": {\"isa\": " + brackets + "}, \"threads\": 1, \"ns\": 1}");
    ADD_FAILURE() << "200,000 brackets";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("tuning 't.jsonl' line 1: nests more than 64 deep"),
              std::string::npos)
        << error.what();
  }
}

TEST(Tuning, NamesAndBytesAreTheSameSchedule) {
  const uint16_t conv2d = 1;
  for (const Json& settings :
       {Json::object(), Json({{"block_pixels", 24}, {"channel_groups", 16}, {"isa", "avx2"}}),
        Json({{"groups_outer", 1}, {"grain", 0.25}})}) {
    EXPECT_EQ(inspect::schedule_json(conv2d, inspect::parse_schedule(conv2d, settings)), settings);
  }
  EXPECT_EQ(inspect::schedule_text(conv2d,
                                   inspect::parse_schedule(conv2d, {{"block_pixels", 24}, {"isa", "avx2"}})),
            "block_pixels=24, isa=avx2");
  // A setting of no knob and no instruction set has no name.
  EXPECT_EQ(inspect::schedule_text(conv2d, {.bytes = 0xff00'0000'ff00'00ff}), "");
}

// ---- plans without their model ----

TEST(Reschedule, IsWhatPackingWithTheSchedulesGives) {
  const AlignedBytes plain = pack_digits("");
  const inspect::PlanReader reader(plain.span());
  Json schedules(reader.view().num_steps(), nullptr);
  std::string log;
  const Json space = space_of(plain);
  for (const Json& step : space.at("steps")) {
    const Json& schedule = step.at("candidates").back();
    schedules[step.at("step").get<size_t>()] = schedule;
    log += line(step.at("key"), schedule, 1);
  }
  const AlignedBytes changed = reschedule(reader.view(), schedules.dump());
  const AlignedBytes packed = pack_digits(log);
  const inspect::PlanReader changed_reader(changed.span()), packed_reader(packed.span());
  Json found = Json::parse(inspect::inspect_json(changed_reader.view()));
  Json expected = Json::parse(inspect::inspect_json(packed_reader.view()));
  EXPECT_TRUE(expected.at("steps") != Json::parse(inspect::inspect_json(reader.view())).at("steps"));
  EXPECT_TRUE(found.at("steps") == expected.at("steps"));
  for (const char* same : {"inputs", "outputs", "provenance", "targets", "functions"}) {
    EXPECT_EQ(found.at(same), expected.at(same)) << same;
  }
}

// Without them a plan whose layers lie in the memory of its inputs would be refused, and take more memory.
TEST(Reschedule, KeepsScratchInTheArenaAndInputsThatAreOverwritten) {
  PackOptions options;
  options.target = "cpu,arch=cortex-m4";
  options.fuse = Fuse::kMemory;
  const AlignedBytes plain = pack(digits_model(), "digits.tflite", options);
  const inspect::PlanReader reader(plain.span());
  const format::Function& before = reader.view().function(0);
  ASSERT_TRUE(before.overwrites_inputs());
  ASSERT_GT(format::count_of(before.scratch_sizes()), 0u);

  const Json unchanged(reader.view().num_steps(), nullptr);
  const AlignedBytes changed = reschedule(reader.view(), unchanged.dump());
  const inspect::PlanReader changed_reader(changed.span());
  const format::Function& after = changed_reader.view().function(0);
  EXPECT_TRUE(after.overwrites_inputs());
  for (const auto list : {&format::Function::scratch_offsets, &format::Function::scratch_sizes}) {
    ASSERT_EQ(format::count_of((after.*list)()), before.num_steps());
    EXPECT_TRUE(std::equal((before.*list)()->begin(), (before.*list)()->end(), (after.*list)()->begin()));
  }
  EXPECT_EQ(Json::parse(inspect::inspect_json(changed_reader.view())).at("memory"),
            Json::parse(inspect::inspect_json(reader.view())).at("memory"));
}

TEST(Reschedule, KeepsTheClassesOfMemoryOfRegions) {
  PackOptions options;
  options.target = "vta, cpu";
  const AlignedBytes plain = pack(digits_model(), "digits.tflite", options);
  const inspect::PlanReader reader(plain.span());
  const Json before = Json::parse(inspect::inspect_json(reader.view()));
  EXPECT_EQ(before.at("banks").back().at("memory_class"), "dram");

  const Json unchanged(reader.view().num_steps(), nullptr);
  const AlignedBytes changed = reschedule(reader.view(), unchanged.dump());
  const inspect::PlanReader changed_reader(changed.span());
  const Json after = Json::parse(inspect::inspect_json(changed_reader.view()));
  // That of the device: where the file has the constants depends on what stands before them.
  EXPECT_EQ(after.at("banks").back(), before.at("banks").back());
  EXPECT_EQ(after.at("regions").at(0).at("binds"), before.at("regions").at(0).at("binds"));
}

TEST(Reschedule, KeepsCopiesOfConstants) {
  PackOptions options;
  options.target_file = {
      "board.json",
      R"({"targets": [{"target": "cpu,arch=cortex-m7", "areas": [{"name": "dtcm", "bytes": 20000, "cost": 1}],
          "copy_constants": {"from": "flash", "cost": 10}}]})"};
  const AlignedBytes plan = pack(digits_model(), "digits.tflite", options);
  const inspect::PlanReader reader(plan.span());
  const Json before = Json::parse(inspect::inspect_json(reader.view())).at("memory");
  ASSERT_GT(before.at("copies").size(), 0u);

  const Json unchanged(reader.view().num_steps(), nullptr);
  const AlignedBytes changed = reschedule(reader.view(), unchanged.dump());
  const inspect::PlanReader changed_reader(changed.span());
  EXPECT_EQ(Json::parse(inspect::inspect_json(changed_reader.view())).at("memory"), before);
}

TEST(Reschedule, RefusesWhatIsNoScheduleOfThePlan) {
  const AlignedBytes plan = pack_digits("");
  const inspect::PlanReader reader(plan.span());
  const auto refusal = [&](const std::string& schedules) -> std::string {
    try {
      (void)reschedule(reader.view(), schedules);
    } catch (const PackError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal("{"), "schedules: the text is not JSON (byte 2)");
  EXPECT_EQ(refusal(std::string(200'000, '[') + std::string(200'000, ']')),
            "schedules: the text nests more than 64 deep");
  EXPECT_EQ(refusal("{}"), "schedules: expected a JSON list with an object for each step");
  EXPECT_EQ(refusal("[]"), "schedules: there are 0 of them, the plan has " +
                               std::to_string(reader.view().num_steps()) + " steps");
  Json schedules(reader.view().num_steps(), nullptr);
  schedules[1] = {{"warp", 1}};
  EXPECT_EQ(refusal(schedules.dump()).rfind("schedules: step 1: ", 0), 0u) << refusal(schedules.dump());
}

// A convolution, a depthwise one in place, a convolution.
AlignedBytes pack_in_place() {
  const auto weights = [](const char* shape, int count) {
    std::string text = "const(Tensor[(" + std::string(shape) + "), int8], [";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(i * 5 % 19 - 9);
    return text + "])";
  };
  const std::string layouts = "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n";
  const std::string pointwise = weights("8, 1, 1, 8", 64) + ", 0, 0, 1f, 1f, " + layouts;
  const std::string text =
      "def @main(%x: Tensor[(1, 24, 24, 8), int8]) {\n  %0 = qnn.conv2d(%x, " + pointwise +
      "  %1 = qnn.requantize(%0, 1f, 0, 50f, 0, out_dtype=\"int8\");\n"
      "  %2 = qnn.conv2d(%1, " +
      weights("8, 3, 3, 1", 72) +
      ", 0, 0, 1f, 1f, groups=8, channels=8, kernel_size=[3, 3], "
      "padding=[1, 1, 1, 1], " +
      layouts +
      "  %3 = qnn.requantize(%2, 1f, 0, 50f, 0, out_dtype=\"int8\");\n"
      "  %4 = qnn.conv2d(%3, " +
      pointwise + "  %5 = qnn.requantize(%4, 1f, 0, 50f, 0, out_dtype=\"int8\");\n  %5\n}\n";
  PackOptions options;
  options.target = "cpu,arch=cortex-m4";
  options.fuse = Fuse::kOff;
  return pack(std::vector<uint8_t>(text.begin(), text.end()), "in_place.relay", options);
}

// Packed for a small device, whose plans have scratch memory in the arena.
AlignedBytes pack_small(Fuse fuse) {
  PackOptions options;
  options.target = "cpu,arch=cortex-m4";
  options.fuse = fuse;
  return pack(digits_model(), "digits.tflite", options);
}

// In place a depthwise convolution takes less scratch memory, and the plan has room for no more.
TEST(Reschedule, AsksOfALayerInPlaceWhatItNeedsThere) {
  const AlignedBytes plan = pack_in_place();
  const inspect::PlanReader reader(plan.span());
  const format::KernelStep& step = reader.view().step(1);
  ASSERT_EQ(reader.view().tensor(step.inputs()->Get(0)).offset(),
            reader.view().tensor(step.outputs()->Get(0)).offset());
  for (const Json& schedule : {Json::object(), Json({{"isa", "reference"}})}) {
    const Json schedules(reader.view().num_steps(), schedule);
    const AlignedBytes changed = reschedule(reader.view(), schedules.dump());
    const inspect::PlanReader changed_reader(changed.span());
    EXPECT_EQ(Json::parse(inspect::inspect_json(changed_reader.view())).at("memory"),
              Json::parse(inspect::inspect_json(reader.view())).at("memory"));
  }
}

// The packer chooses how many rows of some cascades run at a time. Others may need more than the plan's room.
TEST(TuningSpace, BeginsWithThePlansOwnScheduleAndHasRoomForAll) {
  uint64_t num_chosen = 0, num_without_room = 0;
  for (const Fuse fuse : {Fuse::kAuto, Fuse::kMemory}) {
    const AlignedBytes plan = pack_small(fuse);
    const inspect::PlanReader reader(plan.span());
    const Json report = Json::parse(inspect::inspect_json(reader.view()));
    const Json space = space_of(plan);
    for (const Json& step : space.at("steps")) {
      const auto index = step.at("step").get<size_t>();
      const Json& own = report.at("steps").at(index).at("schedule");
      EXPECT_EQ(step.at("candidates").at(0), own) << step;
      num_chosen += own.empty() ? 0 : 1;
      num_without_room += step.at("pruned").at("no_room").get<uint64_t>();
      for (const Json& candidate : step.at("candidates")) {
        Json schedules(reader.view().num_steps(), nullptr);
        schedules[index] = candidate;
        EXPECT_NO_THROW((void)reschedule(reader.view(), schedules.dump())) << schedules;
      }
    }
  }
  EXPECT_GT(num_chosen, 0u);
  EXPECT_GT(num_without_room, 0u);
}

TEST(TuningSpace, HasTheDefaultFirstAndNothingTwice) {
  for (const uint32_t num_threads : {1u, 2u}) {
    const AlignedBytes plan = pack_digits("");
    const Json space = space_of(plan, num_threads);
    EXPECT_EQ(space.at("steps").size(), space.at("num_steps"));
    for (const Json& step : space.at("steps")) {
      const Json& candidates = step.at("candidates");
      ASSERT_FALSE(candidates.empty());
      EXPECT_EQ(candidates[0], Json::object());
      for (size_t i = 1; i < candidates.size(); ++i) EXPECT_NE(candidates[i], candidates[i - 1]);
    }
  }
}

// The digits plan after a change of its bytes, with the digest that belongs to them.
AlignedBytes changed_digits(const std::function<void(AlignedBytes*)>& change) {
  AlignedBytes plan = pack_digits("");
  change(&plan);
  format::Header header;
  std::memcpy(&header, plan.data(), sizeof(header));
  Sha256 digest;
  digest.update(plan.data() + sizeof(header), plan.size() - sizeof(header));
  digest.finish(header.digest);
  std::memcpy(plan.data(), &header, sizeof(header));
  return plan;
}

qplan_status ask_for_space(const AlignedBytes& plan, std::string* text) {
  std::vector<uint8_t> json;
  qplan_error error = testing::empty_error();
  const qplan_status status =
      qplan_tuning_space(plan.data(), plan.size(), QPLAN_ISA_AUTO, 1, testing::append_bytes, &json, &error);
  *text = error.text;
  return status;
}

// A plan of a newer packer is no defect of this one.
TEST(TuningSpace, OfAKernelThatThisBuildLacks) {
  const AlignedBytes plan = changed_digits([](AlignedBytes* bytes) {
    const inspect::PlanReader reader(bytes->span());
    auto* step = reinterpret_cast<flatbuffers::Table*>(
        const_cast<format::KernelStep*>(&reader.view().step(1)));  // NOLINT: the bytes are ours
    ASSERT_TRUE(step->SetField<uint16_t>(format::KernelStep::VT_KERNEL, 500, 0));
  });
  std::string text;
  EXPECT_EQ(ask_for_space(plan, &text), QPLAN_KERNEL_MISSING);
  EXPECT_NE(text.find("step 1"), std::string::npos) << text;
  EXPECT_NE(text.find("needs kernel 500"), std::string::npos) << text;
}

// Text of a plan that an error repeats stays one printable line.
TEST(TuningSpace, ErrorsArePrintable) {
  const AlignedBytes plan = changed_digits([](AlignedBytes* bytes) {
    const char options[] = "arch=x86_64";
    auto* at = std::search(bytes->data(), bytes->data() + bytes->size(), options, options + 4);
    ASSERT_NE(at, bytes->data() + bytes->size());
    std::memcpy(at, "\n\x1b[m", 4);
  });
  std::string text;
  EXPECT_EQ(ask_for_space(plan, &text), QPLAN_INVALID_ARGUMENT);
  EXPECT_NE(text.find("'; ?[m'"), std::string::npos) << text;
  for (const char c : text) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
}

// Bytes that no packer writes: a plan is untrusted, and a schedule never leads a kernel out of its memory.
TEST(Reschedule, AnyBytesInAPlanGiveTheSameOutputs) {
  const AlignedBytes plan = pack_digits("");
  const inspect::PlanReader reader(plan.span());
  testing::Random random(1);
  std::vector<std::vector<uint8_t>> inputs(1, std::vector<uint8_t>(16 * 16));
  for (uint8_t& byte : inputs[0]) byte = static_cast<uint8_t>(random.integer(0, 255));
  testing::ModelSession session(bytes_of(plan), QPLAN_ISA_AUTO, 1);
  const std::vector<std::vector<uint8_t>> expected = session.run(inputs);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    testing::Random bytes(seed);
    SchedulablePlan hostile(reader.view());
    for (uint32_t s = 0; s < reader.view().num_steps(); ++s) {
      uint64_t schedule = 0;
      const int64_t most = seed % 2 == 0 ? 255 : 7;
      for (uint32_t b = 0; b < 8; ++b) schedule |= static_cast<uint64_t>(bytes.integer(0, most)) << (8 * b);
      hostile.set_schedule(s, schedule);
      hostile.set_min_units_per_task(s, static_cast<uint32_t>(bytes.integer(0, 3)));
    }
    testing::ModelSession changed(bytes_of(hostile.file()), QPLAN_ISA_AUTO, 2);
    EXPECT_EQ(changed.run(inputs), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace qplan::schedule::tuning_test
