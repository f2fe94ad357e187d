// Recorded jobs: a directory of job.txt and the files that it names, made of one input. "--- NAME" alone on a
// line begins a file; what precedes the first such line is job.txt.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/vta/isa/vta.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/vta_mutator.h"
#include "tests/support/random.h"

namespace qplan::testing {
namespace {

constexpr std::string_view kMark = "\n--- ";
// A job may ask for memory and time that the defaults allow, and that this target does not have.
constexpr char kLimits[] = "memory=262144,work=200000";

struct File {
  std::string name;
  std::string content;
};

std::vector<File> files_of(std::string_view input) {
  std::vector<File> files;
  files.push_back({"job.txt", ""});
  for (;;) {
    const size_t mark = input.find(kMark);
    files.back().content = std::string(input.substr(0, mark == std::string_view::npos ? mark : mark + 1));
    if (files.size() > 1 && !files.back().content.empty() && files.back().content.back() == '\n') {
      files.back().content.pop_back();  // the line feed belongs to the mark, or to the end
    }
    if (mark == std::string_view::npos || files.size() > 16) return files;
    input.remove_prefix(mark + kMark.size());
    const size_t end = input.find('\n');
    files.push_back({std::string(input.substr(0, std::min(end, input.size()))), ""});
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  }
}

std::string input_of(const std::vector<File>& files) {
  std::string input = files[0].content;
  if (input.empty() || input.back() != '\n') input += '\n';
  for (size_t i = 1; i < files.size(); ++i) input += "--- " + files[i].name + "\n" + files[i].content + "\n";
  return input;
}

// Files are written where this process alone looks, and under names of one part: the target may not harm the
// machine.
bool is_plain(const std::string& name) {
  if (name.empty() || name.size() > 32 || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
  });
}

const std::string& directory() {
  static const std::string path = [] {
    std::string name =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm/qplan-replay-XXXXXX" : "/tmp/qplan-replay-XXXXXX";
    FUZZ_CHECK(mkdtemp(name.data()) != nullptr, "no directory");
    return name;
  }();
  return path;
}

void write_file(const std::string& name, const std::string& content) {
  std::FILE* const file = std::fopen((directory() + "/" + name).c_str(), "wb");
  FUZZ_CHECK(file != nullptr && std::fwrite(content.data(), 1, content.size(), file) == content.size(),
             "cannot write");
  std::fclose(file);
}

void run_job(const uint8_t* data, size_t size) {
  const std::vector<File> files = files_of({reinterpret_cast<const char*>(data), size});
  for (const File& file : files) {
    if (is_plain(file.name)) write_file(file.name, file.content);
  }
  qplan_npu_report report{};
  report.struct_size = sizeof(report);
  const qplan_npu_status status = qplan_npu_sim_replay(directory().c_str(), kLimits, &report);
  FUZZ_CHECK(status == report.status, "returns %d, reports %d", status, report.status);
  FUZZ_CHECK(std::memchr(report.text, '\0', sizeof(report.text)) != nullptr, "the text does not end");
  FUZZ_CHECK(status == QPLAN_NPU_OK || report.text[0] != '\0', "status %d without a text", status);
  for (const File& file : files) {
    if (is_plain(file.name)) unlink((directory() + "/" + file.name).c_str());
  }
}

class JobMutator {
 public:
  explicit JobMutator(unsigned int seed) : seed_(seed), random_(seed) {}

  size_t run(uint8_t* data, size_t size, size_t max_size) {
    if (random_.chance(0.1)) return LLVMFuzzerMutate(data, size, max_size);
    std::vector<File> files = files_of({reinterpret_cast<const char*>(data), size});
    for (int64_t count = random_.integer(1, 3); count > 0; --count) change(&files);
    const std::string input = input_of(files);
    if (input.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::copy(input.begin(), input.end(), data);
    return input.size();
  }

 private:
  size_t below(size_t end) {
    return end == 0 ? 0 : static_cast<size_t>(random_.integer(0, static_cast<int64_t>(end) - 1));
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  std::string number() {
    static const char* const kNumbers[] = {"0",
                                           "0x1000",
                                           "4096",
                                           "0x2000",
                                           "16",
                                           "1",
                                           "0xffffffffffffffff",
                                           "0x7fffffff",
                                           "18446744073709551616",
                                           "-1",
                                           "0x100000000",
                                           "1048576",
                                           "",
                                           "0x"};
    return random_.chance(0.5) ? kNumbers[below(std::size(kNumbers))]
                               : std::to_string(random_.integer(0, 9000));
  }

  void change(std::vector<File>* files) {
    switch (below(4)) {
      case 0: {  // lines of the job: another order, one once more, one less
        std::vector<std::string> lines = lines_of((*files)[0].content);
        if (lines.empty()) return;
        const size_t a = below(lines.size()), b = below(lines.size());
        const int64_t kind = random_.integer(0, 2);
        if (kind == 0) std::swap(lines[a], lines[b]);
        if (kind == 1) lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(b), std::string(lines[a]));
        if (kind == 2) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
        join(lines, files);
        return;
      }
      case 1: {  // a word of a line
        std::vector<std::string> lines = lines_of((*files)[0].content);
        if (lines.empty()) return;
        std::string& line = lines[below(lines.size())];
        const size_t space = line.find(' ', below(line.size()));
        if (space == std::string::npos) return;
        const size_t end = std::min(line.find(' ', space + 1), line.size());
        static const char* const kWords[] = {
            "size",      "base",   "load",   "run",        "check",           "target",
            "vta",       "ethosu", "region", "readonly",   "job.txt",         "../job.txt",
            "/dev/zero", ".",      "a.bin",  "load-0.bin", "instructions.bin"};
        line.replace(space + 1, end - space - 1,
                     random_.chance(0.7) ? number() : kWords[below(std::size(kWords))]);
        join(lines, files);
        return;
      }
      case 2: {  // an instruction
        std::string& content = (*files)[below(files->size())].content;
        const size_t count = content.size() / vta::kInstructionBytes;
        if (count == 0) return;
        uint8_t* const at =
            reinterpret_cast<uint8_t*>(content.data()) + below(count) * vta::kInstructionBytes;
        vta::Instruction instruction;
        if (!decode(vta::kDefaultConfig, at, &instruction)) return;
        VtaMutator(seed_).change(&instruction);
        (void)encode(vta::kDefaultConfig, instruction, at);
        return;
      }
      default: {  // bytes of a file
        std::string& content = (*files)[below(files->size())].content;
        const size_t size = content.size();
        content.resize(size + 64);
        content.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(content.data()), size, content.size()));
      }
    }
  }

  static void join(const std::vector<std::string>& lines, std::vector<File>* files) {
    (*files)[0].content.clear();
    for (const std::string& line : lines) (*files)[0].content += line + "\n";
  }

  unsigned int seed_;
  Random random_;
};

}  // namespace
}  // namespace qplan::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qplan::testing::run_job(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::testing::JobMutator(seed).run(data, size, max_size);
}
