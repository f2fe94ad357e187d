#include "src/packer/target/profile.h"

#include <gtest/gtest.h>

#include "kernels/cpu.h"
#include "qplan/qplan.h"
#include "src/packer/error.h"

namespace qplan::target::profile_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_target(text);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}

TEST(TargetProfile, CpuIsTheWidestFamilyOfX86) {
  const TargetProfile profile = parse_target("cpu");
  EXPECT_EQ(profile.options, "arch=x86_64,isa=avx512vnni");
  // Machines with AVX-512 VNNI may lack AVX-VNNI.
  EXPECT_EQ(profile.isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_SSE41, QPLAN_ISA_AVX2,
                                                 QPLAN_ISA_AVX512VNNI}));
  EXPECT_EQ(profile.conv2d_layout, kLayout_o16k4);
  EXPECT_EQ(profile.fully_connected_layout, kLayout_o16k4);
  EXPECT_EQ(profile.depthwise_layout, kLayout_hwo16);
  EXPECT_EQ(profile.input_origin, InputOrigin::kDtypeMin);
  EXPECT_EQ(profile.pointer_size, 8u);
}

TEST(TargetProfile, LowerIsasOfX86ShareTheLayouts) {
  const std::vector<uint32_t> with_avx2 = {QPLAN_ISA_REFERENCE, QPLAN_ISA_SSE41, QPLAN_ISA_AVX2};
  EXPECT_EQ(parse_target("cpu,isa=sse41").isas,
            (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_SSE41}));
  EXPECT_EQ(parse_target(" cpu , isa = avx2 ").isas, with_avx2);
  std::vector<uint32_t> with_avxvnni = with_avx2;
  with_avxvnni.push_back(QPLAN_ISA_AVXVNNI);
  EXPECT_EQ(parse_target("cpu,isa=avxvnni").isas, with_avxvnni);
  const TargetProfile best = parse_target("cpu");
  for (const std::string isa : {"sse41", "avx2", "avxvnni"}) {
    const TargetProfile profile = parse_target("cpu,isa=" + isa);
    EXPECT_EQ(profile.options, "arch=x86_64,isa=" + isa);
    EXPECT_EQ(profile.conv2d_layout, best.conv2d_layout);
    EXPECT_EQ(profile.fully_connected_layout, best.fully_connected_layout);
    EXPECT_EQ(profile.depthwise_layout, best.depthwise_layout);
    EXPECT_EQ(profile.input_origin, best.input_origin);
  }
}

TEST(TargetProfile, AnotherArchitecturesInstructionSetsAreAskedAboutByOneOfTheirSize) {
  const TargetProfile profile = parse_target("cpu,arch=aarch64,isa=neon");
  const TargetProfile riscv = parse_target("cpu,arch=riscv64");
  EXPECT_EQ(profile.isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_NEON}));
  EXPECT_EQ(profile.conv2d_layout, kLayout_o16k4);
  EXPECT_EQ(riscv.conv2d_layout, kLayout_o16k4);
  if (std::string_view(cpu_arch()) == "x86_64") {
    EXPECT_EQ(riscv.asked_isas, profile.asked_isas);
    EXPECT_EQ(profile.asked_isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_SSE41}));
  }
  EXPECT_EQ(parse_target("cpu,isa=avx2").asked_isas, parse_target("cpu,isa=avx2").isas);
  EXPECT_EQ(riscv.isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_RVV}));
  EXPECT_EQ(parse_target("cpu,arch=aarch64").isas,
            (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_NEON, QPLAN_ISA_DOTPROD}));
  EXPECT_EQ(parse_target("cpu,arch=aarch64,isa=i8mm").isas,
            (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_NEON, QPLAN_ISA_DOTPROD, QPLAN_ISA_I8MM}));
}

// Lesser instruction sets cannot read I8MM's layout, so `arch=aarch64` alone does not choose it.
TEST(TargetProfile, I8mmHasWeightsAndZeroPointsOfItsOwn) {
  const TargetProfile any = parse_target("cpu,arch=aarch64"),
                      neon = parse_target("cpu,arch=aarch64,isa=neon"),
                      i8mm = parse_target("cpu,arch=aarch64,isa=i8mm");
  EXPECT_EQ(any.options, "arch=aarch64,isa=dotprod");
  EXPECT_FALSE(any.prefers_eights);
  EXPECT_EQ(any.input_origin, InputOrigin::kDtypeMiddle);
  EXPECT_EQ(neon.input_origin, InputOrigin::kDtypeMiddle);
  EXPECT_TRUE(i8mm.prefers_eights);
  EXPECT_EQ(i8mm.input_origin, InputOrigin::kZero);
}

TEST(TargetProfile, TheReferenceAndCortexMReadPlainWeights) {
  for (const char* text : {"cpu,isa=reference", "cpu,arch=cortex-m"}) {
    const TargetProfile profile = parse_target(text);
    EXPECT_EQ(profile.isas, std::vector<uint32_t>{QPLAN_ISA_REFERENCE});
    EXPECT_EQ(profile.conv2d_layout, kLayout_ohwi);
    EXPECT_EQ(profile.depthwise_layout, kLayout_ohwi);
    EXPECT_EQ(profile.input_origin, InputOrigin::kZero);
  }
  EXPECT_EQ(parse_target("cpu,arch=cortex-m").pointer_size, 4u);
  EXPECT_EQ(parse_target("cpu,arch=aarch64").pointer_size, 8u);
  EXPECT_EQ(parse_target("cpu,arch=riscv64").options, "arch=riscv64,isa=rvv");
  EXPECT_EQ(parse_target("cpu,arch=cortex-m").task_work, 0u);
}

// No vectors: activations keep their zero point 0, weights lie two and four channels at a time.
TEST(TargetProfile, CoresWithDspReadWeightsInSmallBlocks) {
  for (const std::string core : {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"}) {
    const TargetProfile profile = parse_target("cpu,isa=dsp,arch=" + core);
    EXPECT_EQ(profile.options, "arch=" + core + ",isa=dsp");
    EXPECT_EQ(profile.isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_DSP}));
    EXPECT_EQ(profile.conv2d_layout, kLayout_o2r4);
    EXPECT_EQ(profile.fully_connected_layout, kLayout_o4k4);
    EXPECT_EQ(profile.depthwise_layout, kLayout_hwo16);
    EXPECT_EQ(profile.input_origin, InputOrigin::kZero);
    EXPECT_EQ(profile.pointer_size, 4u);
    EXPECT_EQ(parse_target("cpu,isa=reference,arch=" + core).conv2d_layout, kLayout_ohwi);
  }
}

TEST(TargetProfile, TheBestOfACoreIsTheDefault) {
  for (const std::string core : {"cortex-m4", "cortex-m7", "cortex-m33"}) {
    EXPECT_EQ(parse_target("cpu,arch=" + core).options, "arch=" + core + ",isa=dsp");
    EXPECT_EQ(refusal("cpu,isa=mve,arch=" + core),
              "target: isa 'mve' of arch '" + core + "' is not known; known: reference, dsp");
  }
  for (const std::string core : {"cortex-m55", "cortex-m85"}) {
    const TargetProfile profile = parse_target("cpu,arch=" + core);
    EXPECT_EQ(profile.options, "arch=" + core + ",isa=mve");
    EXPECT_EQ(profile.isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE, QPLAN_ISA_DSP, QPLAN_ISA_MVE}));
    EXPECT_EQ(profile.conv2d_layout, kLayout_o4k16);
    EXPECT_EQ(profile.fully_connected_layout, kLayout_o4k16);
    EXPECT_EQ(profile.depthwise_layout, kLayout_hwo16);
    EXPECT_EQ(profile.input_origin, InputOrigin::kZero);
  }
}

TEST(TargetProfile, CoresWithoutDspReadWeightsAsTheModelHasThem) {
  for (const std::string core : {"cortex-m0plus", "cortex-m3", "rv32imc"}) {
    const TargetProfile profile = parse_target("cpu,arch=" + core);
    EXPECT_EQ(profile.options, "arch=" + core + ",isa=reference");
    EXPECT_EQ(profile.isas, (std::vector<uint32_t>{QPLAN_ISA_REFERENCE}));
    EXPECT_EQ(profile.conv2d_layout, kLayout_ohwi);
    EXPECT_EQ(profile.pointer_size, 4u);
    EXPECT_EQ(refusal("cpu,isa=dsp,arch=" + core),
              "target: isa 'dsp' of arch '" + core + "' is not known; known: reference");
  }
}

TEST(TargetProfile, UnknownThingsAreErrorsThatListTheKnown) {
  EXPECT_EQ(refusal("gpu"), "target: 'gpu' is not known; known: cpu");
  EXPECT_EQ(refusal(""), "target: '' is not known; known: cpu");
  EXPECT_EQ(refusal("cpu,speed=11"),
            "target: option 'speed' of 'cpu' is not known; known: arch, bytes_per_us, "
            "clock, isa, macs_per_us, priority");
  EXPECT_EQ(refusal("cpu,fast"), "target: option 'fast' is not of the form key=value");
  EXPECT_EQ(refusal("cpu,arch=z80"),
            "target: arch 'z80' is not known; known: x86_64, cortex-m, cortex-m0plus, cortex-m3, cortex-m4, "
            "cortex-m7, "
            "cortex-m33, cortex-m55, cortex-m85, aarch64, riscv64, rv32imc");
  EXPECT_EQ(
      refusal("cpu,isa=mmx"),
      "target: isa 'mmx' of arch 'x86_64' is not known; known: reference, sse41, avx2, avxvnni, avx512vnni");
  EXPECT_EQ(refusal("cpu,arch=cortex-m,isa=avx2"),
            "target: isa 'avx2' of arch 'cortex-m' is not known; known: reference, dsp, mve");
}

}  // namespace
}  // namespace qplan::target::profile_test
