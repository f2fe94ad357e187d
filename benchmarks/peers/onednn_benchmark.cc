// oneDNN as a peer of model benchmarks: the convolutions of a network alone, one after the other on one
// thread, each with the formats that oneDNN likes best (no reorders between them), uint8 x int8 -> int32 ->
// uint8 with one scale per output channel. The parts of the network that are missing here (other layers,
// exact rounding) cost nothing.
//
// One command a line on standard input, words between tabs; one line of JSON for each on standard output:
//   load NAME N      a network of N convolutions, which follow, one a line, as 16 numbers:
//                    batch, input h, w, c, output h, w, c, kernel h, w, stride h, w, dilation h, w, pad top,
//                    left, groups
//                                                             {"version": "2.6.3"}
//   run NAME NS      runs it for NS nanoseconds at least      {"ns": [each run's time]}
// An error is {"error": "text"}.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr uint64_t kMinRuns = 3;
constexpr uint64_t kWarmUpRuns = 2;

using dnnl::memory;

struct Layer {
  int64_t batch, input_h, input_w, input_c, output_h, output_w, output_c, kernel_h, kernel_w, stride_h,
      stride_w, dilation_h, dilation_w, pad_top, pad_left, groups;
};

// Padding below and right of the input.
int64_t pad_after(int64_t input, int64_t output, int64_t kernel, int64_t stride, int64_t dilation,
                  int64_t before) {
  return (output - 1) * stride + (kernel - 1) * dilation + 1 - input - before;
}

dnnl::convolution_forward::primitive_desc describe(const Layer& l, const dnnl::engine& engine) {
  const auto any = memory::format_tag::any;
  const memory::desc input({l.batch, l.input_c, l.input_h, l.input_w}, memory::data_type::u8, any);
  const memory::dims weight_dims = l.groups == 1 ? memory::dims{l.output_c, l.input_c, l.kernel_h, l.kernel_w}
                                                 : memory::dims{l.groups, l.output_c / l.groups,
                                                                l.input_c / l.groups, l.kernel_h, l.kernel_w};
  const memory::desc weights(weight_dims, memory::data_type::s8, any);
  const memory::desc bias({l.output_c}, memory::data_type::s32, memory::format_tag::a);
  const memory::desc output({l.batch, l.output_c, l.output_h, l.output_w}, memory::data_type::u8, any);
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, input, weights, bias, output,
      {l.stride_h, l.stride_w}, {l.dilation_h - 1, l.dilation_w - 1}, {l.pad_top, l.pad_left},
      {pad_after(l.input_h, l.output_h, l.kernel_h, l.stride_h, l.dilation_h, l.pad_top),
       pad_after(l.input_w, l.output_w, l.kernel_w, l.stride_w, l.dilation_w, l.pad_left)});
  dnnl::primitive_attr attr;
  attr.set_output_scales(1 << 1, std::vector<float>(static_cast<size_t>(l.output_c), 1.0f / 1024));
  return {desc, attr, engine};
}

class Network {
 public:
  Network(const std::vector<Layer>& layers, const dnnl::engine& engine) : engine_(engine), stream_(engine) {
    std::vector<dnnl::convolution_forward::primitive_desc> descs;
    size_t largest = 0;
    for (const Layer& layer : layers) {
      descs.push_back(describe(layer, engine));
      largest = std::max({largest, descs.back().src_desc().get_size(), descs.back().dst_desc().get_size()});
    }
    // A layer reads what the one before wrote, as in a network: warm in the cache.
    const memory::desc buffer({static_cast<int64_t>(largest)}, memory::data_type::u8, memory::format_tag::a);
    activations_[0] = filled(buffer);
    activations_[1] = filled(buffer);
    for (size_t i = 0; i < descs.size(); ++i) {
      const memory source(descs[i].src_desc(), engine, activations_[i % 2].get_data_handle());
      const memory target(descs[i].dst_desc(), engine, activations_[(i + 1) % 2].get_data_handle());
      steps_.push_back({dnnl::convolution_forward(descs[i]),
                        {{DNNL_ARG_SRC, source},
                         {DNNL_ARG_WEIGHTS, filled(descs[i].weights_desc())},
                         {DNNL_ARG_BIAS, filled(descs[i].bias_desc())},
                         {DNNL_ARG_DST, target}}});
    }
  }

  void run() {
    for (Step& step : steps_) step.primitive.execute(stream_, step.arguments);
    stream_.wait();
  }

 private:
  struct Step {
    dnnl::convolution_forward primitive;
    std::unordered_map<int, memory> arguments;
  };

  memory filled(const memory::desc& desc) {
    memory result(desc, engine_);
    auto* bytes = static_cast<uint8_t*>(result.get_data_handle());
    uint32_t state = 1;
    for (size_t i = 0; i < desc.get_size(); ++i) {
      state = state * 1664525 + 1013904223;
      bytes[i] = static_cast<uint8_t>(state >> 24);
    }
    return result;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  memory activations_[2];
  std::vector<Step> steps_;
};

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

std::string run(Network& network, uint64_t least_ns) {
  for (uint64_t i = 0; i < kWarmUpRuns; ++i) network.run();
  std::ostringstream answer;
  uint64_t total = 0;
  for (uint64_t runs = 0; total < least_ns || runs < kMinRuns; ++runs) {
    const uint64_t begin = now_ns();
    network.run();
    const uint64_t ns = now_ns() - begin;
    total += ns;
    answer << (runs == 0 ? "{\"ns\": [" : ", ") << ns;
  }
  answer << "]}";
  return answer.str();
}

Layer read_layer(std::istream& in) {
  Layer l = {};
  for (int64_t* value : {&l.batch, &l.input_h, &l.input_w, &l.input_c, &l.output_h, &l.output_w, &l.output_c,
                         &l.kernel_h, &l.kernel_w, &l.stride_h, &l.stride_w, &l.dilation_h, &l.dilation_w,
                         &l.pad_top, &l.pad_left, &l.groups}) {
    in >> *value;
  }
  if (!in) throw std::runtime_error("a layer is not 16 numbers");
  return l;
}

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

class Server {
 public:
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command, name;
    uint64_t number = 0;
    words >> command >> name >> number;
    if (!words) return "{\"error\": \"expected a command, a name and a number\"}";
    if (command == "load") {
      std::vector<std::string> lines(number);
      for (std::string& layer : lines) std::getline(std::cin, layer);
      std::vector<Layer> layers;
      for (const std::string& layer : lines) {
        std::istringstream numbers(layer);
        layers.push_back(read_layer(numbers));
      }
      networks_.erase(name);
      networks_.emplace(name, Network(layers, engine_));
      return "{\"version\": \"" + version() + "\"}";
    }
    const auto network = networks_.find(name);
    if (command != "run" || network == networks_.end()) return "{\"error\": \"unknown command or network\"}";
    return run(network->second, number);
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::map<std::string, Network> networks_;
};

}  // namespace

int main() {
  omp_set_num_threads(1);  // Debian's oneDNN runs on OpenMP
  Server server;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::cout << server.answer(line) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "{\"error\": \"" << error.what() << "\"}" << std::endl;
    }
  }
}
