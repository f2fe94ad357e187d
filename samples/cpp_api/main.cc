// Runs a plan on a raw input file and prints the outputs, best first. usage: qplan_cpp_api PLAN INPUT.bin
// [OUTPUT.bin]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <numeric>
#include <qplan/qplan.hpp>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: %s PLAN INPUT.bin [OUTPUT.bin]\n", argv[0]);
    return 2;
  }
  try {
    qplan::SessionOptions options;
    options.threads = 2;
    qplan::Session session(qplan::Plan::map(argv[1]), options);

    std::ifstream file(argv[2], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "'%s': cannot be opened\n", argv[2]);
      return 1;
    }
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const qplan::span<int8_t> input = session.input<int8_t>();
    if (bytes.size() != input.size()) {
      std::fprintf(stderr, "'%s' has %zu bytes, the input has %zu\n", argv[2], bytes.size(), input.size());
      return 1;
    }
    std::copy(bytes.begin(), bytes.end(), input.begin());
    session.run();

    const qplan::span<const int8_t> output = session.output<int8_t>();
    const qplan::TensorInfo info = session.plan().output(0);
    std::vector<size_t> order(output.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return output[a] > output[b]; });
    for (size_t i = 0; i < std::min<size_t>(order.size(), 3); ++i) {
      std::printf("%f  class %zu\n", static_cast<double>(info.dequantize(output[order[i]])), order[i]);
    }
    if (argc == 4) {
      std::ofstream written(argv[3], std::ios::binary);
      written.write(reinterpret_cast<const char*>(output.data()),
                    static_cast<std::streamsize>(output.size()));
      written.close();
      if (!written) {
        std::fprintf(stderr, "'%s': cannot be written\n", argv[3]);
        return 1;
      }
    }
    return 0;
  } catch (const qplan::Error& error) {
    std::fprintf(stderr, "%s [%s]\n", error.what(), error.status_name());
    return 1;
  } catch (const std::exception& error) {  // of the standard library: a folder in place of a file, no memory
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
