// A rewrite and a pass of one's own, in a program that packs a model:
//   custom_pass MODEL PLAN
// average.relay computes (a + b) * 0.5 in float between dequantize and quantize. qplan has an integer kernel
// for sums of quantised tensors but not for this product, so that all five operators run, two of them in
// float. The rewrite brings the factor into the scales of a and b; what is left is one sum of integers.
#include <qplan/host.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <qplan/pass.hpp>
#include <string>
#include <vector>

namespace {

using namespace qplan;

Pattern dequantized(const std::string& name) {
  return op("qnn.dequantize")(any(), constant().shape({}).as(name + "_scale")).as(name).one_use();
}

// (dequantize(a, s) + dequantize(b, t)) * 0.5 -> dequantize(a, s * 0.5) + dequantize(b, t * 0.5). A factor
// that is a power of two changes no bit of the float values; others would.
Rewrite factor_into_scales() {
  const Pattern sum = op("add")(dequantized("a"), dequantized("b")).as("sum").one_use();
  return Rewrite("factor_into_scales", commutative("multiply")(sum, constant().shape({}).as("factor")),
                 [](const Pre& pre, Post& post, const Matches& matches) -> std::optional<PostValue> {
                   const float factor = pre.elements<float>(matches["factor"])[0];
                   if (factor != 0.5F) {
                     post.why("the factor is not 0.5");
                     return std::nullopt;
                   }
                   post.why("the factor is in the scales now");
                   std::vector<PostValue> scaled;
                   for (const std::string name : {"a", "b"}) {
                     const PreNode node = *pre.producer(matches[name]);
                     const float scale = pre.elements<float>(matches[name + "_scale"])[0] * factor;
                     scaled.push_back(post.call(
                         "qnn.dequantize", {post[node.operand(0)], post.scalar(scale), post[node.operand(2)]},
                         node.attrs(), node.name()));
                   }
                   return post.call("add", scaled, {}, matches.root().name());
                 });
}

// A pass may also only look. Passes run in rounds until nothing changes: what the last round saw is what is
// packed.
Pass count_operators(std::map<std::string, int>* counts) {
  return Pass("count_operators",
              [counts](const Pre& pre, Post&) {
                counts->clear();
                for (const PreNode& node : pre.nodes()) ++(*counts)[node.op()];
              })
      .after("canonical_order");
}

void append(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: custom_pass MODEL PLAN\n");
    return EXIT_FAILURE;
  }
  std::map<std::string, int> counts;
  const Passes passes({Pass("scales", {factor_into_scales()}).after("simplify"), count_operators(&counts)});

  qplan_pack_options options = {};
  options.struct_size = sizeof(options);
  options.log_level = QPLAN_LOG_DEBUG;
  options.log = [](void*, uint32_t, const char* text) {
    if (std::string(text).rfind("factor_into_scales", 0) == 0) std::printf("%s\n", text);
  };
  passes.attach(&options);

  qplan_error error = {};
  error.struct_size = sizeof(error);
  std::string plan;
  if (qplan_pack_file(argv[1], &options, append, &plan, &error) < 0 ||
      qplan_file_write(argv[2], plan.data(), plan.size(), &error) < 0) {
    std::fprintf(stderr, "custom_pass: %s\n", error.text);
    return EXIT_FAILURE;
  }
  for (const auto& [op, count] : counts) std::printf("%d x %s\n", count, op.c_str());
  return EXIT_SUCCESS;
}
