// What must hold whatever is given to the packer: a refusal explains itself and writes nothing, and a plan
// opens, runs in exactly the memory that it asks for, in no less, and computes the same on the reference
// kernels as on the best ones.
#ifndef QPLAN_TESTS_FUZZ_PACK_ORACLE_H_
#define QPLAN_TESTS_FUZZ_PACK_ORACLE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/random.h"

namespace qplan::fuzz {

using Bytes = std::vector<uint8_t>;
using testing::Random;

// Plans that ask for more are made, but not run: the fuzzer would find nothing else.
inline constexpr uint64_t kMostMemoryBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMostWork = 20'000'000;

// The same number for the same input, everywhere: what a run does beside the input follows from it.
inline uint64_t fingerprint(const uint8_t* data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 0x100000001b3;
  return hash ^ hash >> 32;
}

// A file without a name: for interfaces that take paths.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(contents.size());
    FUZZ_CHECK(descriptor_ >= 0 && write(descriptor_, contents.data(), contents.size()) == size, "no memfd");
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  int descriptor_;
  std::string path_;
};

// Memory of exactly this size on the heap, so that sanitizers see what instrumented code does beyond it.
class ExactMemory {
 public:
  ExactMemory(uint64_t size, uint32_t alignment) : size_(size) {
    void* bytes = nullptr;
    const size_t at = alignment < sizeof(void*) ? sizeof(void*) : alignment;
    FUZZ_CHECK(posix_memalign(&bytes, at, size) == 0, "no memory of %llu bytes",
               static_cast<unsigned long long>(size));
    bytes_.reset(static_cast<uint8_t*>(bytes));
    std::memset(bytes, 0xa5, size);
  }
  ExactMemory(const Bytes& contents) : ExactMemory(contents.size(), 64) {
    if (!contents.empty()) std::memcpy(bytes_.get(), contents.data(), contents.size());
  }
  uint8_t* data() const { return bytes_.get(); }
  uint64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<uint8_t, Free> bytes_;
  uint64_t size_;
};

// Memory between pages that nothing can touch, for code that is not instrumented. It ends at the second of
// them, except for bytes that its alignment leaves: these bytes, and those before it in its first page, must
// stay as they are.
class GuardedMemory {
 public:
  GuardedMemory(uint64_t size, uint32_t alignment) : size_(size) {
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t step = alignment < 16 ? 16 : alignment;
    const uint64_t used = (size + step - 1) / step * step;
    inner_ = (used + page - 1) / page * page;
    mapping_size_ = inner_ + 2 * page;
    void* mapping = mmap(nullptr, mapping_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(mapping != MAP_FAILED && alignment <= page, "no memory of %llu bytes",
               static_cast<unsigned long long>(size));
    mapping_ = static_cast<uint8_t*>(mapping);
    begin_ = mapping_ + page;
    FUZZ_CHECK(inner_ == 0 || mprotect(begin_, inner_, PROT_READ | PROT_WRITE) == 0, "mprotect");
    std::memset(begin_, kFill, inner_);
    data_ = begin_ + (inner_ - used);
  }
  ~GuardedMemory() {
    for (const uint8_t* byte = begin_; byte < data_; ++byte)
      FUZZ_CHECK(*byte == kFill, "written before a memory");
    for (const uint8_t* byte = data_ + size_; byte < begin_ + inner_; ++byte)
      FUZZ_CHECK(*byte == kFill, "written behind a memory");
    munmap(mapping_, mapping_size_);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  static constexpr uint8_t kFill = 0xa5;
  const uint64_t size_;
  uint64_t inner_ = 0, mapping_size_ = 0;
  uint8_t *mapping_ = nullptr, *begin_ = nullptr, *data_ = nullptr;
};

inline qplan_error new_error() {
  qplan_error error{};
  error.struct_size = sizeof(error);
  return error;
}

// A status that is an error has a text of one line, and is no defect.
inline void check_refusal(qplan_status status, const qplan_error& error) {
  FUZZ_CHECK(status < 0, "status %d", status);
  FUZZ_CHECK(status != QPLAN_INTERNAL, "%s", error.text);
  FUZZ_CHECK(error.status == status, "%d in the error, %d returned", error.status, status);
  FUZZ_CHECK(std::memchr(error.text, '\0', sizeof(error.text)) != nullptr, "the text has no end");
  FUZZ_CHECK(error.text[0] != '\0', "no text for status %d", status);
  for (const char* c = error.text; *c != '\0'; ++c) {
    FUZZ_CHECK(static_cast<unsigned char>(*c) >= 0x20, "control character %d in: %s", *c, error.text);
  }
}

inline void append_bytes(void* user, const char* bytes, size_t size) {
  Bytes& to = *static_cast<Bytes*>(user);
  to.insert(to.end(), bytes, bytes + size);
}
inline void drop_text(void*, const char*, size_t) {}
inline void drop_log(void*, uint32_t, const char*) {}

inline qplan_pack_options pack_options() {
  qplan_pack_options options{};
  options.struct_size = sizeof(options);
  options.planner_budget = 20;
  return options;
}

// False where the packer refuses.
inline bool pack(const uint8_t* model, size_t size, const char* name, const qplan_pack_options& options,
                 Bytes* plan) {
  plan->clear();
  qplan_error error = new_error();
  const qplan_status status = qplan_pack_bytes(model, size, name, &options, append_bytes, plan, &error);
  if (status == QPLAN_OK) {
    FUZZ_CHECK(!plan->empty(), "no plan, but no error either");
    return true;
  }
  check_refusal(status, error);
  FUZZ_CHECK(plan->empty(), "an error, but %zu bytes were written: %s", plan->size(), error.text);
  return false;
}

// Elementary operations of a step, roughly: pools are no multiply-accumulates, but windows.
inline uint64_t work_of(const format::PlanView& view, const format::KernelStep& step) {
  uint64_t elements = 0;
  for (const auto* tensors : {step.inputs(), step.outputs()}) {
    for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
      const uint32_t tensor = tensors->Get(i);
      if (tensor < view.num_tensors()) elements += view.tensor(tensor).size();
    }
  }
  uint64_t work = step.macs() + 8 * elements;
  if (const format::Pool2dParams* pool = step.params_as_Pool2dParams()) {
    work += elements * uint64_t{pool->pool_h()} * pool->pool_w();
  }
  return work;
}

inline bool runs_quickly(const format::PlanView& view) {
  uint64_t work = 0;
  for (uint32_t s = 0; s < view.num_steps(); ++s) {
    if (view.npu_step(s) == nullptr) work += work_of(view, view.step(s));
    if (work > kMostWork) return false;
  }
  return true;
}

// Two workers that take turns, the last task first, on the calling thread.
inline void run_backwards(void*, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* context) {
  for (uint32_t index = count; index > 0; --index) task(context, index - 1, index % 2);
}

class PlanRun {
 public:
  // The outputs, one after the other; nothing where the plan is too large to run here.
  PlanRun(const qplan_plan& plan, uint32_t isa_limit, bool two_workers, uint64_t seed)
      : plan_(plan), seed_(seed) {
    platform_.struct_size = sizeof(platform_);
    platform_.thread_pool = &pool_;
    config_.struct_size = sizeof(config_);
    config_.isa_limit = isa_limit;
    config_.kernels = qplan_kernels_all();
    config_.platform = two_workers ? &platform_ : nullptr;
  }

  bool run(Bytes* outputs) {
    qplan_error error = new_error();
    uint32_t count = 0;
    FUZZ_CHECK(qplan_session_memory_needs(&plan_, &config_, nullptr, &count, &error) == QPLAN_OK, "%s",
               error.text);
    std::vector<qplan_memory_need> needs(count);
    FUZZ_CHECK(qplan_session_memory_needs(&plan_, &config_, needs.data(), &count, &error) == QPLAN_OK, "%s",
               error.text);
    uint64_t total = 0;
    for (const qplan_memory_need& need : needs) {
      if (need.size > kMostMemoryBytes - total) return false;
      total += need.size;
    }
    std::deque<GuardedMemory> buffers;
    std::vector<qplan_memory> memories;
    for (const qplan_memory_need& need : needs) {
      buffers.emplace_back(need.size, need.alignment);
      memories.push_back({buffers.back().data(), buffers.back().size()});
    }
    check_less_is_refused(memories);
    qplan_session* session = nullptr;
    const qplan_status status =
        qplan_session_init(&plan_, &config_, memories.data(), count, &session, &error);
    FUZZ_CHECK(status == QPLAN_OK, "%s", error.text);
    fill_inputs(session);
    FUZZ_CHECK(qplan_session_invoke(session) == QPLAN_OK, "invoke");
    read_outputs(session, outputs);
    // A second time: nothing is left over from the first but states.
    Bytes again;
    FUZZ_CHECK(qplan_session_reset_state(session) == QPLAN_OK, "reset_state");
    FUZZ_CHECK(qplan_session_invoke(session) == QPLAN_OK, "invoke");
    read_outputs(session, &again);
    FUZZ_CHECK(*outputs == again, "the second run has other outputs than the first");
    qplan_session_deinit(session);
    return true;
  }

 private:
  void check_less_is_refused(const std::vector<qplan_memory>& memories) {
    for (size_t m = 0; m < memories.size(); ++m) {
      if (memories[m].size == 0) continue;
      std::vector<qplan_memory> less = memories;
      --less[m].size;
      qplan_error error = new_error();
      qplan_session* session = nullptr;
      const qplan_status status = qplan_session_init(&plan_, &config_, less.data(),
                                                     static_cast<uint32_t>(less.size()), &session, &error);
      FUZZ_CHECK(status == QPLAN_MEMORY_TOO_SMALL, "status %d for one byte less of memory %zu", status, m);
    }
  }

  void fill_inputs(qplan_session* session) const {
    Random random(seed_);
    for (uint32_t i = 0; i < qplan_plan_io_count(&plan_, nullptr, QPLAN_INPUT); ++i) {
      qplan_tensor_info info{};
      info.struct_size = sizeof(info);
      DLTensor view{};
      FUZZ_CHECK(qplan_plan_io_info(&plan_, nullptr, QPLAN_INPUT, i, &info) == QPLAN_OK, "input %u", i);
      FUZZ_CHECK(qplan_session_view(session, QPLAN_INPUT, i, &view) == QPLAN_OK, "input %u", i);
      uint8_t* bytes = static_cast<uint8_t*>(view.data) + view.byte_offset;
      for (uint64_t k = 0; k < info.size_bytes; ++k) bytes[k] = static_cast<uint8_t>(random.integer(0, 255));
    }
  }

  void read_outputs(qplan_session* session, Bytes* outputs) const {
    for (uint32_t i = 0; i < qplan_plan_io_count(&plan_, nullptr, QPLAN_OUTPUT); ++i) {
      qplan_tensor_info info{};
      info.struct_size = sizeof(info);
      DLTensor view{};
      FUZZ_CHECK(qplan_plan_io_info(&plan_, nullptr, QPLAN_OUTPUT, i, &info) == QPLAN_OK, "output %u", i);
      FUZZ_CHECK(qplan_session_view(session, QPLAN_OUTPUT, i, &view) == QPLAN_OK, "output %u", i);
      const uint8_t* bytes = static_cast<const uint8_t*>(view.data) + view.byte_offset;
      outputs->insert(outputs->end(), bytes, bytes + info.size_bytes);
    }
  }

  const qplan_plan& plan_;
  const uint64_t seed_;
  qplan_thread_pool pool_{sizeof(qplan_thread_pool), 2, nullptr, run_backwards, 0, 0};
  qplan_platform platform_{};
  qplan_session_config config_{};
};

// bytes: a plan that the packer made.
inline void check_plan(const Bytes& bytes, uint64_t seed) {
  const ExactMemory exact(bytes);
  qplan_error error = new_error();
  FUZZ_CHECK(qplan_inspect_json(exact.data(), exact.size(), drop_text, nullptr, &error) == QPLAN_OK, "%s",
             error.text);
  FUZZ_CHECK(qplan_disassemble(exact.data(), exact.size(), drop_text, nullptr, &error) == QPLAN_OK, "%s",
             error.text);
  format::PlanView view;
  Error record;
  FUZZ_CHECK(view.open(exact.data(), exact.size(), true, &record) == QPLAN_OK, "%s", record.text());
  if (!runs_quickly(view)) return;
  qplan_plan plan;
  FUZZ_CHECK(qplan_plan_open(&plan, exact.data(), exact.size(), QPLAN_PLAN_DIGEST, &error) == QPLAN_OK, "%s",
             error.text);
  Bytes best, reference;
  if (!PlanRun(plan, QPLAN_ISA_AUTO, seed % 2 == 0, seed).run(&best)) return;
  if (!PlanRun(plan, QPLAN_ISA_REFERENCE, seed % 3 == 0, seed).run(&reference)) return;
  FUZZ_CHECK(best == reference, "the best kernels compute other outputs than the reference");
}

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_PACK_ORACLE_H_
