// Every step of a plan, taken out of it, gives what it gave in its place.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "src/packer/aligned_bytes.h"

namespace qplan::extract_step_test {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::vector<uint8_t>;

constexpr const char* kModel = "samples/models/digits.tflite";

void append(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

// An opened plan with a session on the reference kernels, which remembers what steps write.
class Running {
 public:
  explicit Running(const std::string& bytes) : bytes_(bytes.size()) {
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    qplan_error error = {};
    error.struct_size = sizeof(error);
    EXPECT_EQ(qplan_plan_open(&plan_, bytes_.data(), bytes_.size(), QPLAN_PLAN_DIGEST, &error), QPLAN_OK)
        << error.text;
    platform_.struct_size = sizeof(platform_);
    platform_.user = this;
    platform_.step_end = [](void* user, const qplan_event* event, qplan_status) {
      static_cast<Running*>(user)->look(*event);
    };
    qplan_session_config config = {};
    config.struct_size = sizeof(config);
    config.kernels = qplan_kernels_reference();
    config.platform = &platform_;
    EXPECT_EQ(qplan_host_session_create(&plan_, &config, &host_, &error), QPLAN_OK) << error.text;
    std::string text;
    EXPECT_EQ(qplan_inspect_json(bytes_.data(), bytes_.size(), append, &text, &error), QPLAN_OK);
    json_ = Json::parse(text);
  }
  ~Running() { qplan_host_session_destroy(host_); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void run(const std::vector<Bytes>& inputs) {
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      DLTensor view = {};
      ASSERT_EQ(qplan_session_view(session(), QPLAN_INPUT, i, &view), QPLAN_OK);
      std::memcpy(view.data, inputs[i].data(), inputs[i].size());
    }
    ASSERT_EQ(qplan_session_invoke(session()), QPLAN_OK);
  }
  Bytes output(uint32_t index) {
    qplan_tensor_info info = {};
    info.struct_size = sizeof(info);
    DLTensor view = {};
    EXPECT_EQ(qplan_plan_io_info(&plan_, nullptr, QPLAN_OUTPUT, index, &info), QPLAN_OK);
    EXPECT_EQ(qplan_session_view(session(), QPLAN_OUTPUT, index, &view), QPLAN_OK);
    const auto* bytes = static_cast<const uint8_t*>(view.data);
    return Bytes(bytes, bytes + info.size_bytes);
  }
  const Json& json() const { return json_; }
  const AlignedBytes& bytes() const { return bytes_; }
  std::map<uint32_t, Bytes> written;  // per tensor of the plan

 private:
  qplan_session* session() const { return qplan_host_session_get(host_); }
  void look(const qplan_event& event) {
    const Json& outputs = json_.at("steps").at(event.step).at("outputs");
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      qplan_tensor_info info = {};
      info.struct_size = sizeof(info);
      DLTensor view = {};
      ASSERT_EQ(qplan_session_step_output(session(), i, &info, &view), QPLAN_OK);
      const auto* bytes = static_cast<const uint8_t*>(view.data);
      written[outputs[i].get<uint32_t>()] = Bytes(bytes, bytes + info.size_bytes);
    }
  }

  AlignedBytes bytes_;
  qplan_plan plan_ = {};
  qplan_platform platform_ = {};
  qplan_host_session* host_ = nullptr;
  Json json_;
};

std::string packed(const char* target, uint32_t fuse) {
  qplan_pack_options options = {};
  options.struct_size = sizeof(options);
  options.target = target;
  options.fuse = fuse;
  std::string plan;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(qplan_pack_file(kModel, &options, append, &plan, &error), QPLAN_OK) << error.text;
  return plan;
}

std::string extracted(const AlignedBytes& plan, uint32_t step) {
  std::string result;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(qplan_extract_step(plan.data(), plan.size(), step, append, &result, &error), QPLAN_OK)
      << error.text;
  return result;
}

void check_all_steps(const char* target, uint32_t fuse) {
  Running whole(packed(target, fuse));
  const Json& plan = whole.json();
  Bytes input(plan.at("inputs").at(0).at("bytes").get<size_t>());
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>(37 * i);
  whole.run({input});
  whole.written[plan.at("inputs").at(0).at("tensor").get<uint32_t>()] = input;
  for (uint32_t s = 0; s < plan.at("steps").size(); ++s) {
    SCOPED_TRACE(std::string(target) + ", step " + std::to_string(s) + " " +
                 plan.at("steps").at(s).at("op").get<std::string>());
    const std::string bytes = extracted(whole.bytes(), s);
    EXPECT_LT(bytes.size(), whole.bytes().size() + 8192);
    Running alone(bytes);
    std::vector<Bytes> inputs;
    for (const Json& tensor : alone.json().at("inputs"))
      inputs.push_back(whole.written.at(tensor.at("tensor").get<uint32_t>()));
    ASSERT_NO_FATAL_FAILURE(alone.run(inputs));
    for (uint32_t t = 0; t < plan.at("tensors").size(); ++t) {
      const Json &there = plan.at("tensors").at(t), &here = alone.json().at("tensors").at(t);
      if (here.at("name") == "") continue;
      EXPECT_EQ(here.at("scale"), there.at("scale")) << there.at("name");
      EXPECT_EQ(here.at("zero_point"), there.at("zero_point")) << there.at("name");
    }
    const Json& outputs = alone.json().at("outputs");
    ASSERT_EQ(outputs.size(), plan.at("steps").at(s).at("outputs").size());
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(alone.output(i), whole.written.at(outputs[i].at("tensor").get<uint32_t>()));
      EXPECT_EQ(outputs[i].at("name"),
                plan.at("tensors").at(outputs[i].at("tensor").get<uint32_t>()).at("name"));
    }
  }
}

TEST(ExtractStep, GivesWhatTheStepGaveInItsPlace) { check_all_steps("cpu", QPLAN_FUSE_OFF); }
TEST(ExtractStep, KeepsTheResidualOfTheStep) { check_all_steps("cpu", QPLAN_FUSE_AUTO); }
TEST(ExtractStep, OfACascadeHasItsLayers) { check_all_steps("cpu", QPLAN_FUSE_ALL); }
TEST(ExtractStep, OfARegionHasItsFallbackSteps) { check_all_steps("vta, cpu", QPLAN_FUSE_AUTO); }

TEST(ExtractStep, BeyondTheLastIsAnError) {
  const std::string bytes = packed("cpu", QPLAN_FUSE_AUTO);
  std::string result;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(qplan_extract_step(bytes.data(), bytes.size(), 1000, append, &result, &error), QPLAN_NOT_FOUND);
  EXPECT_NE(std::string(error.text).find("there is no step 1000, the plan has "), std::string::npos)
      << error.text;
  EXPECT_TRUE(result.empty());
}

}  // namespace
}  // namespace qplan::extract_step_test
