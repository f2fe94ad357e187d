#include "tools/progress.h"

#include <unistd.h>

#include <cstdio>

#include "qplan/host.h"

namespace qplan::tools {
namespace {

constexpr uint64_t kSilentNs = 1'000'000'000;
constexpr uint64_t kBetweenNs = 100'000'000;

}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) != 0), start_ns_(qplan_host_now_ns(nullptr)) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(const std::string& stage, uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const uint64_t now = qplan_host_now_ns(nullptr);
  if (now - start_ns_ < kSilentNs || now - last_ns_ < kBetweenNs) return;
  last_ns_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r\x1b[Kqplan: %s", stage.c_str());
  if (total > 0) {
    std::fprintf(stderr, " %llu/%llu", static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(total));
  }
  std::fflush(stderr);
}

}  // namespace qplan::tools
