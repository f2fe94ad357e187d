// Opening plans: what is accepted, and the exact words of what is not.
#include "format/plan_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "tests/support/plan_builder.h"
#include "tests/support/test_kernels.h"

namespace qplan::testing::plan_view_test {
namespace {

using format::Header;
using format::PlanView;

struct Opened {
  qplan_status status;
  std::string text;
};

Opened open(const void* bytes, size_t size, bool digest = false) {
  PlanView view;
  Error error;
  const qplan_status status = view.open(bytes, size, digest, &error);
  EXPECT_EQ(status, error.status());
  EXPECT_EQ(view.is_open(), status == QPLAN_OK);
  EXPECT_EQ(status == QPLAN_OK, std::string(error.text()).empty());
  return {status, error.text()};
}

Opened open(const PlanSpec& spec) {
  const AlignedBytes plan = build_plan(spec);
  return open(plan.data(), plan.size());
}

Header& header_of(const AlignedBytes& plan) { return *reinterpret_cast<Header*>(plan.data()); }

TEST(PlanView, ReadsWhatWasWritten) {
  PlanSpec spec = sequence_spec();
  const uint32_t constant = spec.add_constant({3}, {1, 2, 3}, "weights");
  const AlignedBytes plan = build_plan(spec);
  PlanView view;
  Error error;
  ASSERT_EQ(view.open(plan.data(), plan.size(), true, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(view.num_banks(), 2u);
  EXPECT_EQ(view.num_tensors(), 5u);
  EXPECT_EQ(view.num_steps(), 3u);
  EXPECT_EQ(view.num_functions(), 1u);
  EXPECT_EQ(view.main_bank(), 0u);
  EXPECT_STREQ(view.tensor_name(1), "a");
  EXPECT_STREQ(view.step_name(2), "third");
  EXPECT_EQ(view.step(2).macs(), 11u);
  EXPECT_EQ(view.find_function(nullptr), &view.function(0));
  EXPECT_EQ(view.find_function("main"), &view.function(0));
  EXPECT_EQ(view.find_function("mai"), nullptr);
  EXPECT_EQ(view.find_function("main2"), nullptr);
  EXPECT_TRUE(view.is_constant(constant));
  EXPECT_FALSE(view.is_constant(0));
  EXPECT_EQ(view.constant_data(0), nullptr);
  const auto* bytes = static_cast<const uint8_t*>(view.constant_data(constant));
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
  EXPECT_EQ(bytes[2], 3);
}

TEST(PlanView, CountsTensorsUpToTheLastOneThatIsNoConstant) {
  PlanSpec spec = sequence_spec();
  const auto leading = [](const PlanSpec& of) {
    const AlignedBytes plan = build_plan(of);
    PlanView view;
    Error error;
    EXPECT_EQ(view.open(plan.data(), plan.size(), false, &error), QPLAN_OK) << error.text();
    return view.num_leading_tensors();
  };
  EXPECT_EQ(leading(spec), 4u);
  spec.add_constant({3}, {1, 2, 3}, "weights");
  EXPECT_EQ(leading(spec), 4u);
  const TensorSpec activation = spec.tensors[0];
  spec.tensors.push_back(activation);
  EXPECT_EQ(leading(spec), 6u);
  // Up to 65,534 of them are told apart from the constants after them.
  for (const uint32_t count : {65534u, 65535u}) {
    PlanSpec large = spec;
    large.tensors.resize(count, activation);
    large.add_constant({3}, {1, 2, 3}, "more weights");
    EXPECT_EQ(leading(large), count == 65534u ? count : count + 1);
  }
}

TEST(PlanView, NamesMayBeStripped) {
  PlanSpec spec = sequence_spec();
  spec.with_names = false;
  const AlignedBytes plan = build_plan(spec);
  PlanView view;
  Error error;
  ASSERT_EQ(view.open(plan.data(), plan.size(), true, &error), QPLAN_OK) << error.text();
  EXPECT_STREQ(view.tensor_name(0), "");
  EXPECT_STREQ(view.step_name(0), "");
  EXPECT_EQ(view.names(), nullptr);
}

TEST(PlanView, FileMayBeFollowedByAnything) {
  const AlignedBytes plan = build_plan(sequence_spec());
  AlignedBytes longer(plan.size() + 100, 64, 0xa5);
  memcpy(longer.data(), plan.data(), plan.size());
  EXPECT_EQ(open(longer.data(), longer.size(), true).status, QPLAN_OK);
}

TEST(PlanView, NewerMinorVersionIsReadable) {
  const AlignedBytes plan = build_plan(sequence_spec());
  header_of(plan).version_minor = 77;
  EXPECT_EQ(open(plan.data(), plan.size()).status, QPLAN_OK);
}

TEST(PlanView, UnknownKernelIsTheSessionsBusiness) {
  PlanSpec spec = sequence_spec();
  spec.steps[1].kernel = 4000;
  EXPECT_EQ(open(spec).status, QPLAN_OK);
}

// ---- header ----

TEST(PlanViewHeader, EveryTruncationIsRefused) {
  PlanSpec spec = sequence_spec();
  spec.add_constant({100}, std::vector<uint8_t>(100, 7));
  for (const bool with_names : {true, false}) {
    spec.with_names = with_names;
    const AlignedBytes plan = build_plan(spec);
    for (size_t size = 0; size < plan.size(); ++size) {
      const AlignedBytes cut(plan.data(), size);
      const Opened opened = open(cut.data(), size);
      ASSERT_EQ(opened.status, QPLAN_PLAN_CORRUPT) << size;
      if (size >= 64) {
        ASSERT_EQ(opened.text,
                  "plan: truncated: " + std::to_string(size) + " bytes of " + std::to_string(plan.size()));
      }
    }
  }
}

TEST(PlanViewHeader, TruncationWithAnAdjustedHeaderIsRefused) {
  PlanSpec spec = sequence_spec();
  spec.add_constant({100}, std::vector<uint8_t>(100, 7));
  const AlignedBytes plan = build_plan(spec);
  const uint64_t content = header_of(plan).content_size;
  for (size_t size = 64; size < plan.size(); ++size) {
    const AlignedBytes cut(plan.data(), size);
    header_of(cut).file_size = size;
    if (size < content) header_of(cut).content_size = size;
    if (size < 64 + header_of(cut).root_size) header_of(cut).root_size = static_cast<uint32_t>(size - 64);
    const Opened opened = open(cut.data(), size);
    if (opened.status == QPLAN_PLAN_CORRUPT) continue;
    // A plan may lose its names, and padding.
    ASSERT_EQ(opened.status, QPLAN_OK) << size;
    const size_t end = size <= content ? content : plan.size();
    for (size_t i = size; i < end; ++i) ASSERT_EQ(plan[i], 0) << size;
  }
}

TEST(PlanViewHeader, MisalignedBytesAreRefused) {
  const AlignedBytes plan = build_plan(sequence_spec());
  const AlignedBytes moved(plan.size() + 64);
  for (const size_t by : {1u, 8u, 32u}) {
    memcpy(moved.data() + by, plan.data(), plan.size());
    EXPECT_EQ(open(moved.data() + by, plan.size()).status, QPLAN_MISALIGNED);
  }
}

TEST(PlanViewHeader, OtherFilesAreRefused) {
  AlignedBytes file(100, 64, 0x20);
  EXPECT_EQ(open(file.data(), file.size()).text,
            "plan: the file does not begin with 'QPLN': it is not a plan");
}

TEST(PlanViewHeader, AnotherMajorVersionIsRefused) {
  const AlignedBytes plan = build_plan(sequence_spec());
  header_of(plan).version_major = 2;
  header_of(plan).version_minor = 5;
  const Opened opened = open(plan.data(), plan.size());
  EXPECT_EQ(opened.status, QPLAN_PLAN_VERSION);
  EXPECT_EQ(opened.text, "plan: format version 2.5 is not readable, expected 1.x; pack the model again");
}

TEST(PlanViewHeader, UnknownFeatureBitIsNamed) {
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if ((format::kKnownFeatures >> bit & 1) != 0) continue;
    const AlignedBytes plan = build_plan(sequence_spec());
    header_of(plan).required_features |= 1u << bit;
    const Opened opened = open(plan.data(), plan.size());
    EXPECT_EQ(opened.status, QPLAN_PLAN_VERSION);
    EXPECT_EQ(opened.text, "plan: needs feature bit " + std::to_string(bit) +
                               ", which this runtime does not know; update the runtime");
  }
}

TEST(PlanViewHeader, SizesMustRise) {
  for (const auto& change : std::vector<std::function<void(Header&)>>{
           [](Header& h) { h.root_size = 0xffffffff; }, [](Header& h) { h.content_size = h.file_size + 1; },
           [](Header& h) { h.content_size = 63; }, [](Header& h) { h.content_size = ~uint64_t{0}; },
           [](Header& h) { h.root_size = 0; }, [](Header& h) { h.root_size = 7; },
           [](Header& h) { h.file_size = 10; }}) {
    const AlignedBytes plan = build_plan(sequence_spec());
    change(header_of(plan));
    EXPECT_EQ(open(plan.data(), plan.size()).status, QPLAN_PLAN_CORRUPT);
  }
}

TEST(PlanViewHeader, DigestIsCheckedWhenAsked) {
  const AlignedBytes plan = build_plan(sequence_spec());
  EXPECT_EQ(open(plan.data(), plan.size(), true).status, QPLAN_OK);
  header_of(plan).digest[31] ^= 1;
  EXPECT_EQ(open(plan.data(), plan.size(), false).status, QPLAN_OK);
  const Opened opened = open(plan.data(), plan.size(), true);
  EXPECT_EQ(opened.status, QPLAN_PLAN_CORRUPT);
  EXPECT_EQ(opened.text, "plan: the SHA-256 of the file differs from the header's; copy or pack it again");
}

// ---- content: one wrong field at a time ----

struct Wrong {
  const char* name;
  void (*change)(PlanSpec&);
  const char* text;  // how the error begins
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

std::string name_of(const ::testing::TestParamInfo<Wrong>& wrong) { return wrong.param.name; }

class PlanViewWrong : public ::testing::TestWithParam<Wrong> {};

TEST_P(PlanViewWrong, IsRefusedWithItsReason) {
  PlanSpec spec = sequence_spec();
  spec.add_constant({4}, {1, 2, 3, 4}, "c");
  ASSERT_EQ(open(spec).status, QPLAN_OK);
  GetParam().change(spec);
  const Opened opened = open(spec);
  EXPECT_EQ(opened.status, QPLAN_PLAN_CORRUPT);
  EXPECT_EQ(opened.text.substr(0, strlen(GetParam().text)), GetParam().text);
}

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

const Wrong kWrongBanks[] = {
    {"NoBanks", [](PlanSpec& s) { s.banks.clear(); }, "plan: 0 memory banks, expected 1 to 8"},
    {"TooManyBanks", [](PlanSpec& s) { s.banks.resize(9); }, "plan: 9 memory banks, expected 1 to 8"},
    {"NoArena",
     [](PlanSpec& s) {
       s.banks[0].kind = format::BankKind_CONSTANT;
       s.banks[0].size = 0;
     },
     "plan: no arena among its memory banks"},
    {"UnknownKind", [](PlanSpec& s) { s.banks[1].kind = static_cast<format::BankKind>(9); },
     "plan: bank 1: unknown kind 9"},
    {"AlignmentZero", [](PlanSpec& s) { s.banks[0].alignment = 0; },
     "plan: bank 0: alignment 0, expected a power of two up to 4096"},
    {"AlignmentOdd", [](PlanSpec& s) { s.banks[0].alignment = 48; }, "plan: bank 0: alignment 48"},
    {"AlignmentLarge",
     [](PlanSpec& s) {
       s.banks.push_back({format::BankKind_ARENA, 8192, 64, {}, {}});
     },
     "plan: bank 2: alignment 8192"},
    {"FirstArenaAlignment", [](PlanSpec& s) { s.banks[0].alignment = 128; },
     "plan: bank 0: alignment 128 of the first arena, expected at most 64"},
    {"ArenaHuge", [](PlanSpec& s) { s.banks[0].size = kHuge; }, "plan: bank 0: 18446744073709551615 bytes"},
    {"SegmentUnaligned", [](PlanSpec& s) { s.banks[1].file_offset = 65; },
     "plan: bank 1: constants at byte 65"},
    {"SegmentInRoot", [](PlanSpec& s) { s.banks[1].file_offset = 64; },
     "plan: bank 1: 4 bytes of constants at byte 64"},
    {"SegmentBeyond", [](PlanSpec& s) { s.banks[1].file_offset = uint64_t{1} << 40; },
     "plan: bank 1: 4 bytes"},
    {"SegmentWraps", [](PlanSpec& s) { s.banks[1].size = kHuge; },
     "plan: bank 1: 18446744073709551615 bytes"},
    {"SegmentTooLong", [](PlanSpec& s) { s.banks[1].size = 65; }, "plan: bank 1: 65 bytes"},
};
INSTANTIATE_TEST_SUITE_P(Banks, PlanViewWrong, ::testing::ValuesIn(kWrongBanks), name_of);

const Wrong kWrongTensors[] = {
    {"UnknownCode", [](PlanSpec& s) { s.tensors[1].code = 5; },
     "plan: tensor 1 'a': unknown dtype (code 5, 8 bits)"},
    {"UnknownBits", [](PlanSpec& s) { s.tensors[1].bits = 4; },
     "plan: tensor 1 'a': unknown dtype (code 0, 4 bits)"},
    {"Rank7", [](PlanSpec& s) { s.tensors[1].shape.assign(7, 1); },
     "plan: tensor 1 'a': rank 7, expected at most 6"},
    {"ExtentZero", [](PlanSpec& s) { s.tensors[1].shape[2] = 0; }, "plan: tensor 1 'a': extent 0 of axis 2"},
    {"ExtentNegative", [](PlanSpec& s) { s.tensors[1].shape[0] = -1; },
     "plan: tensor 1 'a': extent -1 of axis 0"},
    {"ProductWraps",
     [](PlanSpec& s) {
       s.tensors[1].shape = {int64_t{1} << 62, 4};
       s.tensors[1].size = 0;
     },
     "plan: tensor 1 'a': extent 4611686018427387904 of axis 0"},
    {"TooManyElements",
     [](PlanSpec& s) {
       s.tensors[1].shape = {65536, 32768};
     },
     "plan: tensor 1 'a': extent 32768 of axis 1, expected at least 1 and fewer than 2^31 elements"},
    {"SizeSmall", [](PlanSpec& s) { s.tensors[1].size = 23; },
     "plan: tensor 1 'a': 23 bytes, its shape and dtype make 24"},
    {"UnknownBank", [](PlanSpec& s) { s.tensors[1].bank = 2; }, "plan: tensor 1 'a': bank 2 of 2"},
    {"BeyondBank", [](PlanSpec& s) { s.tensors[3].offset += 1; },
     "plan: tensor 3 'y': 24 bytes at offset 193 reach beyond the 216 bytes of bank 0"},
    {"BeyondSecondArea",
     [](PlanSpec& s) {
       s.banks.push_back({format::BankKind_ARENA, 64, 47, {}, {}});
       s.tensors[1].bank = 2;
       s.tensors[1].offset = 24;
     },
     "plan: tensor 1 'a': 24 bytes at offset 24 reach beyond the 47 bytes of bank 2"},
    {"BeyondTheAreas",
     [](PlanSpec& s) {
       s.banks.push_back({format::BankKind_ARENA, 64, 64, {}, {}});
       s.tensors[1].bank = 3;
     },
     "plan: tensor 1 'a': bank 3 of 3"},
    {"OffsetWraps", [](PlanSpec& s) { s.tensors[3].offset = kHuge - 3; },
     "plan: tensor 3 'y': 24 bytes at offset"},
    {"Unaligned",
     [](PlanSpec& s) {
       s.tensors[1].bits = 32;
       s.tensors[1].shape = {2};
       s.tensors[1].size = 8;
       s.tensors[1].offset = 66;
     },
     "plan: tensor 1 'a': offset 66 in a bank aligned to 64, expected a multiple of 4"},
    {"BankUnaligned",
     [](PlanSpec& s) {
       s.banks[1].alignment = 2;
       s.tensors[4].bits = 32;
       s.tensors[4].shape = {1};
     },
     "plan: tensor 4 'c': offset 0 in a bank aligned to 2, expected a multiple of 4"},
    {"UseBackwards",
     [](PlanSpec& s) {
       s.tensors[1].first_use = 2;
       s.tensors[1].last_use = 1;
     },
     "plan: tensor 1 'a': used from step 2 to 1 of 3"},
    {"UseBeyond", [](PlanSpec& s) { s.tensors[1].last_use = 3; },
     "plan: tensor 1 'a': used from step 0 to 3 of 3"},
    {"ZeroPointMissing", [](PlanSpec& s) { s.tensors[3].quantization->zero_points.pop_back(); },
     "plan: tensor 3 'y': 3 scales and 2 zero points"},
    {"AxisBeyond", [](PlanSpec& s) { s.tensors[3].quantization->axis = 3; },
     "plan: tensor 3 'y': quantisation axis 3 of 3 axes"},
    {"AxisNegative", [](PlanSpec& s) { s.tensors[3].quantization->axis = -1; },
     "plan: tensor 3 'y': quantisation axis -1 of 3 axes"},
    {"AxisExtent", [](PlanSpec& s) { s.tensors[3].quantization->axis = 2; },
     "plan: tensor 3 'y': 3 scales along axis 2 of extent 4"},
    {"ScaleZero", [](PlanSpec& s) { s.tensors[3].quantization->scales[1] = 0; },
     "plan: tensor 3 'y': scale 1 is not a finite number above zero"},
    {"ScaleNegative", [](PlanSpec& s) { s.tensors[3].quantization->scales[1] = -1; },
     "plan: tensor 3 'y': scale 1"},
    {"ScaleNan",
     [](PlanSpec& s) { s.tensors[3].quantization->scales[0] = std::numeric_limits<float>::quiet_NaN(); },
     "plan: tensor 3 'y': scale 0"},
    {"ScaleInfinite",
     [](PlanSpec& s) { s.tensors[3].quantization->scales[0] = std::numeric_limits<float>::infinity(); },
     "plan: tensor 3 'y': scale 0"},
    {"ZeroPointOutside", [](PlanSpec& s) { s.tensors[0].quantization->zero_points[0] = 128; },
     "plan: tensor 0 'x': zero point 128, expected -128 to 127"},
};
INSTANTIATE_TEST_SUITE_P(Tensors, PlanViewWrong, ::testing::ValuesIn(kWrongTensors), name_of);

std::pair<format::KernelParams, flatbuffers::Offset<void>> empty_residual(
    flatbuffers::FlatBufferBuilder& builder) {
  return {format::KernelParams_AddParams, format::CreateAddParams(builder).Union()};
}

const Wrong kWrongSteps[] = {
    {"NoBody", [](PlanSpec& s) { s.steps[1].has_body = false; }, "plan: step 1 'second': unknown kind 0"},
    {"NoKernel", [](PlanSpec& s) { s.steps[1].kernel = 0; }, "plan: step 1 'second': names no kernel"},
    {"NoParams", [](PlanSpec& s) { s.steps[1].params = nullptr; },
     "plan: step 1 'second': kernel 21 with parameters of type 0, expected 18"},
    {"ResidualOfAnotherKernel", [](PlanSpec& s) { s.steps[1].residual = empty_residual; },
     "plan: step 1 'second': kernel 21 has a residual, which only kernel 1 adds"},
    {"OtherParams", [](PlanSpec& s) { s.steps[1].params = concat_params(0); },
     "plan: step 1 'second': kernel 21 with parameters of type 14, expected 18"},
    {"InputBeyond",
     [](PlanSpec& s) {
       s.steps[1].inputs = {0, 5};
     },
     "plan: step 1 'second': input 1 is tensor 5 of 5"},
    {"OutputBeyond", [](PlanSpec& s) { s.steps[1].outputs = {0xffffffff}; },
     "plan: step 1 'second': output 0 is tensor 4294967295 of 5"},
    {"NoOutput", [](PlanSpec& s) { s.steps[1].outputs.clear(); }, "plan: step 1 'second': has no output"},
    {"ConstantOutput", [](PlanSpec& s) { s.steps[1].outputs = {4}; },
     "plan: step 1 'second': output 0 (tensor 4) is a constant"},
    {"TooManyInputs", [](PlanSpec& s) { s.steps[1].inputs.assign(4097, 0); },
     "plan: step 1 'second': 4097 inputs and 1 outputs, expected at most 4096 and 256"},
    {"TooManyOutputs", [](PlanSpec& s) { s.steps[1].outputs.assign(257, 0); },
     "plan: step 1 'second': 1 inputs and 257"},
};
INSTANTIATE_TEST_SUITE_P(Steps, PlanViewWrong, ::testing::ValuesIn(kWrongSteps), name_of);

const Wrong kWrongFunctions[] = {
    {"None", [](PlanSpec& s) { s.functions.clear(); }, "plan: 0 functions, expected 1 to 64"},
    {"TooMany", [](PlanSpec& s) { s.functions.resize(65); }, "plan: 65 functions, expected 1 to 64"},
    {"NoMain", [](PlanSpec& s) { s.functions[0].name = "other"; },
     "plan: the first function is 'other', expected 'main'"},
    {"NoName", [](PlanSpec& s) { s.functions[0].name = ""; },
     "plan: function 0: expected a name of 1 to 127 bytes"},
    {"LongName", [](PlanSpec& s) { s.functions[0].name.assign(128, 'x'); },
     "plan: function 0: expected a name"},
    {"SameName", [](PlanSpec& s) { s.functions.push_back(s.functions[0]); },
     "plan: functions 0 and 1 are both called 'main'"},
    {"InputBeyond", [](PlanSpec& s) { s.functions[0].inputs = {5}; },
     "plan: function 'main': input 0 is tensor 5 of 5"},
    {"InputConstant", [](PlanSpec& s) { s.functions[0].inputs = {4}; },
     "plan: function 'main': input 0 (tensor 4) is a constant"},
    {"OutputConstant",
     [](PlanSpec& s) {
       s.functions[0].outputs = {3, 4};
     },
     "plan: function 'main': output 1 (tensor 4) is a constant"},
    {"TooManyInputs", [](PlanSpec& s) { s.functions[0].inputs.assign(257, 0); },
     "plan: function 'main': 257 inputs, expected at most 256"},
    {"StepsBeyond", [](PlanSpec& s) { s.functions[0].num_steps = 4; },
     "plan: function 'main': 4 steps from step 0 on reach beyond the plan's 3"},
    {"StepsWrap",
     [](PlanSpec& s) {
       s.functions[0].first_step = 2;
       s.functions[0].num_steps = 0xffffffff;
     },
     "plan: function 'main': 4294967295 steps from step 2"},
    {"ScratchUnaligned", [](PlanSpec& s) { s.functions[0].scratch_per_worker = 65; },
     "plan: function 'main': 65 bytes of scratch per worker"},
    {"ScratchHuge", [](PlanSpec& s) { s.functions[0].scratch_per_worker = kHuge & ~uint64_t{63}; },
     "plan: function 'main': 18446744073709551552 bytes of scratch per worker"},
    {"ScratchOfFewerSteps",
     [](PlanSpec& s) {
       s.functions[0].scratch_offsets = s.functions[0].scratch_sizes = {0, 0};
     },
     "plan: function 'main': 2 offsets and 2 sizes of scratch for 3 steps"},
    {"ScratchOffsetUnaligned",
     [](PlanSpec& s) {
       s.functions[0].scratch_offsets = {0, 8, 0};
       s.functions[0].scratch_sizes = {0, 16, 0};
     },
     "plan: function 'main': scratch of step 1 is bytes 8 to 24"},
    {"ScratchBeyondTheArena",
     [](PlanSpec& s) {
       s.functions[0].scratch_offsets = {0, 0, 4294967280};
       s.functions[0].scratch_sizes = {0, 0, 4294967295};
     },
     "plan: function 'main': scratch of step 2 is bytes 4294967280 to 8589934575"},
};
INSTANTIATE_TEST_SUITE_P(Functions, PlanViewWrong, ::testing::ValuesIn(kWrongFunctions), name_of);

// The sound plan has 216 bytes of tensors in an arena of 512; tensor 4 is a constant of 4 bytes.
PlanSpec& with_copy(PlanSpec& spec, uint32_t bank, uint64_t offset) {
  spec.banks[0].size = 512;
  spec.copies = {{4, bank, offset}};
  return spec;
}

const Wrong kWrongCopies[] = {
    {"CopyOfAnActivation", [](PlanSpec& s) { with_copy(s, 0, 256).copies[0].tensor = 3; },
     "plan: copy 0 of tensor 3 'y': its tensor is 3 of 5, expected a constant, at least 0"},
    {"CopyOfNoTensor", [](PlanSpec& s) { with_copy(s, 0, 256).copies[0].tensor = 5; },
     "plan: copy 0: its tensor is 5 of 5, expected a constant, at least 0"},
    {"CopiedTwice",
     [](PlanSpec& s) {
       with_copy(s, 0, 256).copies.push_back({4, 0, 320});
     },
     "plan: copy 1 of tensor 4 'c': its tensor is 4 of 5, expected a constant, at least 5"},
    {"CopyAmongConstants", [](PlanSpec& s) { with_copy(s, 1, 256); },
     "plan: copy 0 of tensor 4 'c': bank 1 of 2, expected an arena"},
    {"CopyInNoBank", [](PlanSpec& s) { with_copy(s, 2, 256); },
     "plan: copy 0 of tensor 4 'c': bank 2 of 2, expected an arena"},
    {"CopyOverATensor", [](PlanSpec& s) { with_copy(s, 0, 212); },
     "plan: copy 0 of tensor 4 'c': 4 bytes at offset 212 of bank 0, expected bytes 216 to 512, after its"},
    {"CopyOverScratch",
     [](PlanSpec& s) {
       with_copy(s, 0, 256);
       s.functions[0].scratch_offsets = {0, 240, 0};
       s.functions[0].scratch_sizes = {0, 32, 0};
     },
     "plan: copy 0 of tensor 4 'c': 4 bytes at offset 256 of bank 0, expected bytes 272 to 512"},
    {"CopyOverACopy",
     [](PlanSpec& s) {
       with_copy(s, 0, 256);
       s.copies.push_back({s.add_constant({8}, {1, 2, 3, 4, 5, 6, 7, 8}, "d"), 0, 259});
     },
     "plan: copy 1 of tensor 5 'd': 8 bytes at offset 259 of bank 0, expected bytes 260 to 512"},
    {"CopyBeyondTheArena", [](PlanSpec& s) { with_copy(s, 0, 509); },
     "plan: copy 0 of tensor 4 'c': 4 bytes at offset 509 of bank 0, expected bytes 216 to 512"},
    {"CopyWraps", [](PlanSpec& s) { with_copy(s, 0, kHuge - 3); },
     "plan: copy 0 of tensor 4 'c': 4 bytes at offset 18446744073709551612 of bank 0, expected bytes 216 to"},
    {"CopyUnaligned",
     [](PlanSpec& s) {
       with_copy(s, 0, 257);
       s.copies[0].tensor = s.add_constant({1}, {1, 2, 3, 4}, "d", 0, 32);
     },
     "plan: copy 0 of tensor 5 'd': offset 257 in a bank aligned to 64, expected a multiple of 4"},
};
INSTANTIATE_TEST_SUITE_P(Copies, PlanViewWrong, ::testing::ValuesIn(kWrongCopies), name_of);

TEST(PlanView, CopiesAreVerifiedByCallersThatUseThem) {
  PlanSpec spec = sequence_spec();
  const uint32_t other = spec.add_constant({4}, {5, 6, 7, 8}), copied = spec.add_constant({4}, {1, 2, 3, 4});
  spec.banks[0].size = 512;
  spec.copies = {{copied, 0, 508}};
  const AlignedBytes plan = build_plan(spec);
  PlanView view;
  Error error;
  ASSERT_EQ(view.open_for_cpu(plan.data(), plan.size(), &error), QPLAN_OK) << error.text();
  EXPECT_EQ(view.num_leading_tensors(), other) << "its address is not kept";
  ASSERT_EQ(view.open_copies(&error), QPLAN_OK) << error.text();
  EXPECT_EQ(view.num_leading_tensors(), copied + 1);
  spec.copies[0].offset = 509;
  const AlignedBytes wrong = build_plan(spec);
  ASSERT_EQ(view.open_for_cpu(wrong.data(), wrong.size(), &error), QPLAN_OK) << error.text();
  EXPECT_EQ(view.open_copies(&error), QPLAN_PLAN_CORRUPT);
  EXPECT_FALSE(view.is_open());
}

TEST(PlanView, NamesInErrorsStayOnOneShortLine) {
  PlanSpec spec = sequence_spec();
  spec.tensors[1].name = "evil\n\x1b[2J" + std::string(1000, 'x');
  spec.tensors[1].size = 1;
  const Opened opened = open(spec);
  EXPECT_EQ(opened.text.find('\n'), std::string::npos);
  EXPECT_EQ(opened.text.find('\x1b'), std::string::npos);
  EXPECT_EQ(opened.text, "plan: tensor 1 'evil??[2J" + std::string(51, 'x') +
                             "...': 1 bytes, its shape and dtype make 24");
}

// ---- work ----

// Many steps that all refer to one long vector of inputs would make verification quadratic.
TEST(PlanView, SharedVectorsDoNotMakeVerificationQuadratic) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<uint32_t> inputs(4000, 0), one = {0};
  const auto shared_inputs = builder.CreateVector(inputs);
  const auto outputs = builder.CreateVector(one);
  const auto params = format::CreateNoParams(builder, 1).Union();
  const auto body = format::CreateKernelStep(builder, kAddByte, shared_inputs, outputs,
                                             format::KernelParams_NoParams, params);
  const auto step = format::CreateStep(builder, format::StepBody_KernelStep, body.Union());
  const std::vector<flatbuffers::Offset<format::Step>> steps(100000, step);
  const std::vector<flatbuffers::Offset<format::Bank>> banks = {
      format::CreateBank(builder, format::BankKind_ARENA, 64, 64, 0)};
  const std::vector<int64_t> shape = {1};
  const std::vector<flatbuffers::Offset<format::Tensor>> tensors = {
      format::CreateTensorDirect(builder, 0, 8, &shape, 0, 0, 1, 0, 0)};
  const std::vector<flatbuffers::Offset<format::Function>> functions = {
      format::CreateFunctionDirect(builder, "main", &one, &one, 0, 0, 0)};
  builder.Finish(format::CreatePlanDirect(builder, nullptr, &banks, &tensors, &steps, &functions));
  AlignedBytes plan(64 + builder.GetSize());
  Header& header = header_of(plan);
  memcpy(header.magic, format::kMagic, 4);
  header.version_major = format::kVersionMajor;
  header.root_size = builder.GetSize();
  header.content_size = header.file_size = plan.size();
  memcpy(plan.data() + 64, builder.GetBufferPointer(), builder.GetSize());
  const Opened opened = open(plan.data(), plan.size());
  EXPECT_EQ(opened.text.substr(0, 46), "plan: its vectors are shared so often that the");
}

TEST(PlanView, AClosedViewIsNotOpen) { EXPECT_FALSE(PlanView().is_open()); }

}  // namespace
}  // namespace qplan::testing::plan_view_test
