// A network of two regions with an operator between them that the simulated devices have no sequence for.
#ifndef QPLAN_TESTS_NPU_PATH_TWO_REGIONS_H_
#define QPLAN_TESTS_NPU_PATH_TWO_REGIONS_H_

#include <string>

#include "tests/npu_path/npu_session.h"

namespace qplan::npu_path {

// 16 channels to 16, 3 x 3, padding 1, TFL2.
inline std::string layer_text(const std::string& result, const std::string& operand, int seed) {
  std::string weights, bias;
  for (int i = 0; i < 16 * 9 * 16; ++i)
    weights += (i == 0 ? "" : ", ") + std::to_string((i * 31 + seed * 17 + i / 7) % 255 - 127);
  for (int o = 0; o < 16; ++o) bias += (o == 0 ? "" : ", ") + std::to_string(o * 500 - 3000 + seed);
  return "  %" + result + "c = qnn.conv2d(%" + operand + ", const(Tensor[(16, 3, 3, 16), int8], [" + weights +
         "]), 3, 0, 0.05f, 0.01f, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"OHWI\", "
         "name=\"" +
         result + "\");\n  %" + result + "b = nn.bias_add(%" + result + "c, const(Tensor[(16), int32], [" +
         bias + "]), axis=3, name=\"" + result + "\");\n  %" + result + " = qnn.requantize(%" + result +
         "b, 0.0005f, 0, 0.3f, -2, name=\"" + result + "\");\n";
}

inline std::string two_regions_text() {
  return "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 6, 6, 16), int8]) {\n" +
         layer_text("first", "x", 1) +
         "  %middle = qnn.softmax(%first, 0.3f, -2, 0.00390625f, -128, "
         "contract=\"f32e\", name=\"middle\");\n" +
         layer_text("second", "middle", 2) + "  %second\n}\n";
}

inline std::vector<Bytes> sample_inputs(const NpuSession& session, uint32_t seed) {
  std::vector<Bytes> inputs;
  for (uint32_t i = 0; i < session.num_inputs(); ++i) {
    Bytes bytes(session.io_bytes(QPLAN_INPUT, i));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
    inputs.push_back(bytes);
  }
  return inputs;
}

}  // namespace qplan::npu_path

#endif  // QPLAN_TESTS_NPU_PATH_TWO_REGIONS_H_
