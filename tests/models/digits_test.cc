// The repository's own model against the NumPy oracle of samples/train_digits: bit-exact without any other
// data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tests/support/buffer.h"
#include "tests/support/isas.h"

namespace qplan::testing::digits_test {
namespace {

constexpr size_t kInputBytes = 16 * 16;
constexpr size_t kClasses = 10;

template <typename T>
std::vector<T> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << path;
  return std::vector<T>(bytes.begin(), bytes.end());
}

std::string data_path(const std::string& name) { return "tests/data/digits/" + name; }

class Digits : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<uint8_t> model = read_file<uint8_t>("samples/models/digits.tflite");
    ASSERT_FALSE(model.empty());
    std::vector<uint8_t> plan;
    const auto append = [](void* user, const char* bytes, size_t size) {
      auto& to = *static_cast<std::vector<uint8_t>*>(user);
      to.insert(to.end(), bytes, bytes + size);
    };
    qplan_error error{};
    error.struct_size = sizeof(error);
    ASSERT_EQ(qplan_pack_bytes(model.data(), model.size(), "digits.tflite", nullptr, append, &plan, &error),
              QPLAN_OK)
        << error.text;
    bytes_ = Buffer<uint8_t>(plan);
    ASSERT_EQ(qplan_plan_open(&plan_, bytes_.data(), bytes_.size(), QPLAN_PLAN_DIGEST, &error), QPLAN_OK)
        << error.text;
  }

  // The outputs of all inputs, one after the other.
  std::vector<int8_t> run(const std::vector<int8_t>& inputs, uint32_t isa, uint32_t num_threads) {
    const qplan_thread_pool* pool = qplan_pool_create(num_threads);
    qplan_platform platform{};
    platform.struct_size = sizeof(platform);
    platform.thread_pool = pool;
    qplan_session_config config{};
    config.struct_size = sizeof(config);
    config.isa_limit = isa;
    config.kernels = qplan_kernels_all();
    config.platform = &platform;
    qplan_error error{};
    error.struct_size = sizeof(error);
    qplan_host_session* host_session = nullptr;
    EXPECT_EQ(qplan_host_session_create(&plan_, &config, &host_session, &error), QPLAN_OK) << error.text;
    std::vector<int8_t> outputs(inputs.size() / kInputBytes * kClasses);
    if (host_session != nullptr) {
      qplan_session* session = qplan_host_session_get(host_session);
      for (size_t i = 0; i < inputs.size() / kInputBytes; ++i) {
        DLTensor view{};
        EXPECT_EQ(qplan_session_view(session, QPLAN_INPUT, 0, &view), QPLAN_OK);
        std::memcpy(static_cast<char*>(view.data) + view.byte_offset, &inputs[i * kInputBytes], kInputBytes);
        EXPECT_EQ(qplan_session_invoke(session), QPLAN_OK);
        EXPECT_EQ(qplan_session_view(session, QPLAN_OUTPUT, 0, &view), QPLAN_OK);
        std::memcpy(&outputs[i * kClasses], static_cast<const char*>(view.data) + view.byte_offset, kClasses);
      }
      qplan_host_session_destroy(host_session);
    }
    qplan_pool_destroy(pool);
    return outputs;
  }

  Buffer<uint8_t> bytes_;
  qplan_plan plan_;
};

TEST_F(Digits, InputAndOutputAreWhatTheTrainingScriptWrote) {
  qplan_tensor_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(qplan_plan_io_count(&plan_, nullptr, QPLAN_INPUT), 1u);
  ASSERT_EQ(qplan_plan_io_count(&plan_, nullptr, QPLAN_OUTPUT), 1u);
  ASSERT_EQ(qplan_plan_io_info(&plan_, nullptr, QPLAN_INPUT, 0, &info), QPLAN_OK);
  EXPECT_EQ(std::vector<int64_t>(info.shape, info.shape + info.ndim), (std::vector<int64_t>{1, 16, 16, 1}));
  ASSERT_EQ(info.num_scales, 1u);
  EXPECT_EQ(info.scales[0], 1.0f / 255);
  EXPECT_EQ(info.zero_points[0], -128);
  ASSERT_EQ(qplan_plan_io_info(&plan_, nullptr, QPLAN_OUTPUT, 0, &info), QPLAN_OK);
  EXPECT_EQ(std::vector<int64_t>(info.shape, info.shape + info.ndim), (std::vector<int64_t>{1, 10}));
  EXPECT_EQ(info.scales[0], 1.0f / 256);
}

TEST_F(Digits, SamplePicturesGiveTheExpectedBytes) {
  for (int digit = 0; digit < 10; ++digit) {
    const std::string name = "digit" + std::to_string(digit);
    const std::vector<int8_t> output =
        run(read_file<int8_t>(data_path(name + "_input.bin")), QPLAN_ISA_AUTO, 1);
    EXPECT_EQ(output, read_file<int8_t>(data_path(name + "_output.bin"))) << name;
    EXPECT_EQ(std::max_element(output.begin(), output.end()) - output.begin(), digit);
  }
}

class DigitsOnIsa : public Digits, public ::testing::WithParamInterface<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(All, DigitsOnIsa, ::testing::ValuesIn(kIsas), isa_test_name);

TEST_P(DigitsOnIsa, AllHeldOutDigitsAreBitExactForEveryThreadCount) {
  QPLAN_SKIP_UNLESS_ISA(GetParam());
  const std::vector<int8_t> inputs = read_file<int8_t>(data_path("held_out_inputs.bin"));
  const std::vector<int8_t> expected = read_file<int8_t>(data_path("held_out_outputs.bin"));
  ASSERT_EQ(expected.size() / kClasses, inputs.size() / kInputBytes);
  for (uint32_t num_threads : {1u, 2u}) {
    EXPECT_EQ(run(inputs, GetParam(), num_threads), expected) << num_threads << " threads";
  }
}

TEST_F(Digits, HeldOutAccuracyIsWhatTheReadmeSays) {
  const std::vector<int8_t> outputs =
      run(read_file<int8_t>(data_path("held_out_inputs.bin")), QPLAN_ISA_AUTO, 1);
  const std::vector<uint8_t> labels = read_file<uint8_t>(data_path("held_out_labels.bin"));
  ASSERT_EQ(outputs.size(), labels.size() * kClasses);
  size_t correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto begin = outputs.begin() + static_cast<std::ptrdiff_t>(i * kClasses);
    correct += std::max_element(begin, begin + kClasses) - begin == labels[i] ? 1 : 0;
  }
  EXPECT_EQ(labels.size(), 360u);
  EXPECT_EQ(correct, 358u);
}

}  // namespace
}  // namespace qplan::testing::digits_test
