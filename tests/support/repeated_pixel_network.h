// Relay text of networks in which a convolution reads a repeated pixel beside other channels.
#ifndef QPLAN_TESTS_SUPPORT_REPEATED_PIXEL_NETWORK_H_
#define QPLAN_TESTS_SUPPORT_REPEATED_PIXEL_NETWORK_H_

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace qplan::testing {

// A convolution of x, [1, height, 3, 6], and of its largest elements, repeated. What is written here is the
// case that the packer makes two layers of (src/packer/target/cpu/repeated_pixels.cc).
struct RepeatedPixelNetwork {
  std::string dtype = "uint8";
  int height = 5;
  std::string concatenated = "(%2, %x)";
  int axis = 3;
  int channels = 12;  // of the concatenation
  int output_c = 32;
  int kernel = 1;
  std::string window = "strides=[2, 1]";
  std::string pool = "";     // "": of the whole image
  int input_zero_point = 0;  // beyond the least number of the dtype
  int weights_zero_point = 3;
  int least_weight = -128, greatest_weight = 127;
  bool has_bias = true;
  int32_t greatest_bias = 4000;
  int bias_axis = 3;
  std::string scales = "1f";  // of the sums
  int scale_axis = 3;
  std::string contract = "tfl2";
  // After %7, the result of the convolution; its last line gives the outputs.
  std::string tail = "%7";
  uint64_t seed = 1;  // of weights and bias

  // A tail that reads the concatenation, too, so that the convolution stays whole. The first output is %7 or
  // what the tail gives.
  std::string whole_tail() const {
    const size_t last = tail.rfind('\n') == std::string::npos ? 0 : tail.rfind('\n') + 1;
    return tail.substr(0, last) + "(" + tail.substr(last) + ", %4)";
  }

  std::string text() const { return text_with(tail); }
  std::string whole_text() const { return text_with(whole_tail()); }

  // Scales that are all different.
  static std::string scales_of(int channels) {
    std::vector<float> values;
    for (int o = 0; o < channels; ++o) values.push_back(0.5f + 0.125f * static_cast<float>(o));
    return "const(Tensor[(" + std::to_string(channels) + "), float32], " + list(values) + ")";
  }

  // Tails.
  static std::string clip() { return "%8 = clip(%7, a_min=20f, a_max=150f);\n%8"; }
  // The sum of the result and of another convolution of x.
  std::string residual() const { return "%8 = qnn.add(%7, %0, 1f, 3, 1f, 5, 1.5f, 4);\n%8"; }
  std::string next_layer() const {
    Random random(seed + 1000);
    return "%8 = qnn.conv2d(%7, const(Tensor[(16, 3, 3, " + std::to_string(output_c) + "), int8], " +
           list(random.integers<int8_t>(static_cast<size_t>(16 * 9 * output_c), -128, 127)) +
           "), 5, 0, 1f, 1f, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
           "%9 = qnn.requantize(%8, 1f, 0, 9000f, 3, out_dtype=\"" +
           dtype + "\");\n%9";
  }

 private:
  template <typename T>
  static std::string list(const std::vector<T>& values) {
    std::ostringstream out;
    for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "[" : ", ") << +values[i];
    return out.str() + "]";
  }

  std::string text_with(const std::string& last_lines) const {
    Random random(seed);
    const int zero_point = (dtype == "uint8" ? 0 : -128) + input_zero_point;
    const auto conv = [&](const std::string& data, int kernel_size, int input_c) {
      const auto count = static_cast<size_t>(output_c * kernel_size * kernel_size * input_c);
      std::ostringstream s;
      s << "qnn.conv2d(" << data << ", const(Tensor[(" << output_c << ", " << kernel_size << ", "
        << kernel_size << ", " << input_c << "), int8], "
        << list(random.integers<int8_t>(count, least_weight, greatest_weight)) << "), " << zero_point << ", "
        << weights_zero_point << ", 1f, 1f, " << window
        << ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n";
      return s.str();
    };
    const std::string size = "[" + std::to_string(height) + ", 3]";
    std::ostringstream s;
    // Read by residual() alone.
    const std::string other = conv("%x", 1, 6);
    s << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, " << height << ", 3, 6), " << dtype << "]) {\n";
    if (last_lines.find("%0") != std::string::npos) {
      s << "%3 = " << other << "%0 = qnn.requantize(%3, 1f, 0, 500f, 9, out_dtype=\"" << dtype << "\");\n";
    }
    s << "%1 = nn.max_pool2d(%x, " << (pool.empty() ? "pool_size=" + size : pool) << ", layout=\"NHWC\");\n"
      << "%2 = image.resize2d(%1, size=" << size << ", layout=\"NHWC\");\n"
      << "%4 = concatenate(" << concatenated << ", axis=" << axis << ");\n"
      << "%5 = " << conv("%4", kernel, channels);
    if (has_bias) {
      s << "%6 = nn.bias_add(%5, const(Tensor[(" << output_c << "), int32], "
        << list(random.integers<int32_t>(static_cast<size_t>(output_c), -greatest_bias, greatest_bias))
        << "), axis=" << bias_axis << ");\n";
    }
    s << "%7 = qnn.requantize(" << (has_bias ? "%6" : "%5") << ", " << scales
      << ", 0, 700f, 5, axis=" << scale_axis << ", out_dtype=\"" << dtype << "\", contract=\"" << contract
      << "\");\n"
      << last_lines << "\n}\n";
    return s.str();
  }
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_REPEATED_PIXEL_NETWORK_H_
