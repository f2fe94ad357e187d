// A call of each operator, for tests that ask each row of the operators' table the same question.
#ifndef QPLAN_TESTS_PACKER_OP_OPERATOR_EXAMPLES_H_
#define QPLAN_TESTS_PACKER_OP_OPERATOR_EXAMPLES_H_

#include <map>
#include <string>

#include "src/packer/op/op_def.h"
#include "src/packer/text/text.h"

namespace qplan::op::operator_examples {

inline const char kParams[] =
    "%f: Tensor[(2, 3), float32], %g: Tensor[(4, 2, 3), float32], %b: Tensor[(2, 3), bool], %v: Tensor[(3), "
    "float32], "
    "%q: Tensor[(2, 3), int8], %r: Tensor[(4, 2, 3), int8], %i: Tensor[(2, 3), int32], %one: Tensor[(2, 1, "
    "3), int8], "
    "%w: Tensor[(4, 3), int8], %wf: Tensor[(4, 3), float32], %c: Tensor[(1, 4, 6, 8), int8], "
    "%cf: Tensor[(1, 4, 6, 8), float32], %k: Tensor[(8, 2, 3, 3), int8], %kf: Tensor[(8, 2, 3, 3), float32], "
    "%index: Tensor[(2), int32], %two: Tensor[(2), float32], %three: Tensor[(3), int32], "
    "%h: Tensor[(2, 3), int16], %t: Tensor[(4, 2, 3, 8), int8], "
    // Operands of a recurrent layer of two cells.
    "%s: Tensor[(1, 5, 3), int8], %sf: Tensor[(1, 5, 3), float32], %wi: Tensor[(8, 3), int8], "
    "%gi: Tensor[(6, 3), float32], %gr: Tensor[(6, 2), float32], %gb: Tensor[(6), float32], "
    "%wr: Tensor[(8, 2), int8], %bi: Tensor[(8), int32], %bf: Tensor[(8), float32], "
    "%sy: Tensor[(1, 2), int8], %sc: Tensor[(1, 2), int16], %syf: Tensor[(1, 2), float32], "
    "%ft: Tensor[(4, 5), int16], %fb: Tensor[(4), int32], %fs: Tensor[(2, 4, 5), int16], %j: Tensor[(4, 2, "
    "3), int32]";

inline std::string table() {
  std::string text = "const(Tensor[(256), uint8], [";
  for (int i = 0; i < 256; ++i) text += (i == 0 ? "" : ", ") + std::to_string((i * 37 + 11) % 256);
  return text + "])";
}

// A call of each operator. Where the results' shape or dtype may differ from the data's, they do.
inline const std::map<std::string, std::string>& examples() {
  static const std::map<std::string, std::string> kExamples = [] {
    const std::string binary_scales = "0.5f, 1, 0.25f, 2, 0.5f, 3", unary_scales = "0.5f, 1, 0.25f, 3";
    std::map<std::string, std::string> calls = {
        {"qnn.quantize", "%f, 0.5f, 0"},
        {"qnn.dequantize", "%q, 0.5f, 0"},
        {"qnn.requantize", "%i, " + unary_scales},
        {"nn.dynamic_quantize", "%cf, padding=[1, 0, 2, 1]"},
        {"nn.dynamic_dequantize", "%i, %two, %index, %v, %three"},
        {"qnn.conv2d",
         "%c, %k, 0, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=8, groups=2, padding=[1, 0, 1, 0]"},
        {"nn.conv2d", "%cf, %kf, kernel_size=[3, 3], channels=8, groups=2, padding=[1, 0, 1, 0]"},
        {"qnn.dense", "%q, %w, 0, 0, 0.5f, 0.5f, units=4"},
        {"nn.dense", "%f, %wf, units=4"},
        {"nn.bias_add", "%f, %v"},
        {"qnn.add", "%q, %r, " + binary_scales},
        {"qnn.subtract", "%q, %r, " + binary_scales},
        {"qnn.mul", "%q, %r, " + binary_scales},
        {"qnn.squared_difference", "%q, %r, " + binary_scales},
        {"qnn.divide", "%q, %r, " + binary_scales},
        {"qnn.prelu", "%r, %q, " + binary_scales},
        {"qnn.batch_matmul", "%q, %w, " + binary_scales + ", transpose_b=True"},
        {"nn.integer_lstm",
         "%s, %wi, %wr, %bi, %bi, %sy, %sc, input_multiplier=[9, 9, 9, 9], input_shift=[0, 0, 0, 0], "
         "recurrent_multiplier=[9, 9, 9, 9], recurrent_shift=[0, 0, 0, 0], output_multiplier=9, "
         "output_shift=-7, output_zero_point=3, cell_bits=12"},
        {"nn.integer_svdf",
         "%q, %w, %ft, %fb, %index, %fs, rank=2, feature_multiplier=9, feature_shift=0, "
         "output_multiplier=9, output_shift=-7, output_zero_point=3"},
        {"nn.integer_softmax", "%q, input_scale=0.5f"},
        {"qnn.log_softmax", "%q, 0.5f, 1, 0.0625f, 127"},
        {"nn.log_softmax", "%f"},
        {"floor_divide", "%i, %j"},
        {"floor_mod", "%i, %j"},
        {"gather_nd", "%r, %i, index_axis=-1"},
        {"custom",
         "(%q, %f), operator=\"Op\", options=\"{\\\"a\\\": [1, 2.5]}\", shapes=[[3, 2]], dtypes=\"int16\", "
         "scales=\"[0.5, 0.0, 0.25]\", zero_points=[1, 0, 0], scratch_bytes=8"},
        {"npu.program",
         "(const(Tensor[(2), uint8], [1, 2]), %q), format=\"f\", device=\"d\", shapes=[[3, 2]], "
         "dtypes=\"int16\", "
         "memory_bytes=64, input_offsets=[0], output_offsets=[16]"},
        {"nn.lstm", "%sf, %wi, %wr, %bf, %bf, %syf, %syf"},
        {"nn.gru", "%sf, %gi, %gr, %gb, %gb, %syf"},
        {"qnn.conv2d_transpose", "%c, %t, 0, 0, 0.5f, 0.5f, strides=[2, 1], crop=[1, 0], output_size=[8, 8]"},
        {"qnn.tanh", "%h, 0.5f, 0, 0.000030517578125f, 0"},
        {"qnn.l2_normalize", "%q, 0.5f, 1, 0.0078125f, 0"},
        {"qnn.sum", "%q, " + unary_scales + ", axis=[1]"},
        {"qnn.prod", "%q, " + unary_scales + ", axis=[1]"},
        {"max", "%q, axis=[1]"},
        {"sum", "%f, axis=[1]"},
        {"prod", "%f, axis=[1]"},
        {"cumsum", "%f, axis=1"},
        {"topk", "%f, k=2"},
        {"nn.batch_matmul", "%f, %wf, transpose_b=True"},
        {"min", "%q, axis=[1]"},
        {"argmin", "%q, axis=1"},
        {"clip", "%q, a_min=-7f, a_max=50f"},
        {"cast", "%q, dtype=\"int32\""},
        {"nn.pad", "%q, 5, pad_width=[[1, 0], [0, 2]]"},
        {"qnn.avg_pool2d", "%c, 0.5f, 3, 0.5f, 3, pool_size=[2, 3], padding=[1, 1], layout=\"NHWC\""},
        {"nn.max_pool2d", "%c, pool_size=[2, 3], layout=\"NHWC\""},
        {"nn.avg_pool2d", "%cf, pool_size=[2, 3]"},
        {"nn.global_avg_pool2d", "%cf"},
        {"qnn.mean", "%q, " + unary_scales + ", axis=[1]"},
        {"mean", "%f, axis=[1]"},
        {"qnn.softmax", "%q, 0.5f, 1, 0.00390625f, -128"},
        {"nn.softmax", "%f"},
        {"qnn.sigmoid", "%q, 0.5f, 1, 0.00390625f, -128"},
        {"reshape", "%q, newshape=[3, 2]"},
        {"squeeze", "%one, axis=[1]"},
        {"expand_dims", "%q, axis=1"},
        {"nn.batch_flatten", "%c"},
        {"transpose", "%q, axes=[1, 0]"},
        {"concatenate", "(%q, %q, %q), axis=1"},
        {"split", "%q, indices_or_sections=3, axis=1"},
        {"strided_slice", "%q, begin=[0, 1], end=[2, 3]"},
        {"take", "%q, %index, axis=1, mode=\"fast\""},
        {"image.resize2d", "%c, size=[7, 9]"},
        {"argmax", "%q, axis=1"},
        {"qnn.lookup", "%q, " + table()},
        {"nn.batch_norm", "%f, %v, %v, %v, %v"},
        {"where", "%b, %f, %g"},
    };
    for (const char* name : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "less",
                             "less_equal", "equal", "power"}) {
      calls[name] = "%f, %g";
    }
    for (const char* name :
         {"nn.relu", "nn.leaky_relu", "sigmoid", "tanh", "exp", "sqrt", "negative", "abs", "round", "floor",
          "ceil", "hard_sigmoid", "rsqrt", "log", "erf", "sin", "cos", "nn.elu"}) {
      calls[name] = "%f";
    }
    return calls;
  }();
  return kExamples;
}

struct Example {
  ir::Module module;
  const ir::Function& function() const { return module.main(); }
  const ir::Node& node() const { return function().nodes().back(); }
  const ir::TensorType& operand(size_t i) const { return function().type(node().operands[i]); }
  const ir::TensorType& result(size_t i = 0) const { return function().type(node().results[i]); }
};

inline Example example(const OpDef& op) {
  const std::string call = "%0 = " + op.name + "(" + examples().at(op.name) + ");\n";
  return {text::parse(
      "def @main(" + std::string(kParams) + ") {\n" + call + (op.num_results ? "%0.0" : "%0") + "\n}", "t")};
}

}  // namespace qplan::op::operator_examples

#endif  // QPLAN_TESTS_PACKER_OP_OPERATOR_EXAMPLES_H_
