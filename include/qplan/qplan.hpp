// qplan.hpp -- the runtime as C++ objects, over qplan.h and host.h. Header only; link qplan::host or
// qplan::shared.
//
//   qplan::Plan plan = qplan::Plan::map("model.qplan");
//   qplan::Session session(plan, {.threads = 2});        // C++20; in C++17: options.threads = 2
//   qplan::span<int8_t> x = session.input<int8_t>(0);    // the session's own memory: nothing is copied
//   std::copy(image.begin(), image.end(), x.begin());
//   session.run();
//   qplan::span<const int8_t> y = session.output<int8_t>(0);
//
// C++17; where the compiler has it, qplan::span is std::span (C++20). Errors are exceptions (qplan::Error),
// so that firmware without exceptions uses qplan.h. Objects own what they hold, can be moved and not copied,
// and free it when they go; a session keeps its plan. Spans are good as long as the session. One session is
// used by one thread at a time.
#ifndef QPLAN_QPLAN_HPP_
#define QPLAN_QPLAN_HPP_

#include <qplan/host.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#define QPLAN_HAS_STD_SPAN 1
#else
#define QPLAN_HAS_STD_SPAN 0
#endif

namespace qplan {
// The two kinds of span are two types: programs may be linked of files of both standards.
#if QPLAN_HAS_STD_SPAN
inline namespace run_v1_std_span {
template <typename T>
using span = std::span<T>;
#else
inline namespace run_v1_own_span {
// What of std::span this header and loops need.
template <typename T>
class span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using iterator = T*;
  constexpr span() = default;
  constexpr span(T* data, size_t size) : data_(data), size_(size) {}
  template <typename C, typename = decltype(static_cast<T*>(std::declval<C&>().data()))>
  constexpr span(C& container)
      : data_(container.data()), size_(container.size()) {}  // NOLINT: as std::span's
  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};
#endif

// A call of the C API that failed: what() is its text.
class Error : public std::runtime_error {
 public:
  Error(qplan_status status, const std::string& text, int32_t step = -1, int32_t tensor = -1)
      : std::runtime_error(text.empty() ? qplan_status_name(status) : text),
        status_(status),
        step_(step),
        tensor_(tensor) {}
  explicit Error(const qplan_error& error) : Error(error.status, error.text, error.step, error.tensor) {}
  qplan_status status() const { return status_; }
  const char* status_name() const { return qplan_status_name(status_); }
  int32_t step() const { return step_; }      // the step concerned, or -1
  int32_t tensor() const { return tensor_; }  // the tensor concerned, or -1

 private:
  qplan_status status_;
  int32_t step_, tensor_;
};

// An input or output, as the plan states it.
struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;
  DLDataType dtype = {};
  size_t size_bytes = 0;
  std::vector<float> scales;  // real value = scale * (element - zero_point); empty: not quantised
  std::vector<int32_t> zero_points;
  int32_t quant_axis = 0;

  size_t num_elements() const { return size_bytes / (dtype.bits / 8u); }
  float dequantize(int32_t element, size_t channel = 0) const {
    return scales.at(channel) * static_cast<float>(element - zero_points.at(channel));
  }
};

namespace detail {
template <typename T>
T sized() {
  T made;
  std::memset(&made, 0, sizeof(made));
  made.struct_size = sizeof(made);
  return made;
}
inline void check(qplan_status status, const qplan_error& error) {
  if (status < 0) throw Error(status, error.text, error.step, error.tensor);
}
constexpr uint8_t kBoolCode = 6;  // kDLBool, which older dlpack.h lack
template <typename T>
constexpr DLDataType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "elements are integers, floats or bool");
  static_assert(sizeof(bool) == 1, "a plan's bool is a byte");
  if (std::is_same_v<T, bool>) return {kBoolCode, 8, 1};
  return {static_cast<uint8_t>(std::is_floating_point_v<T> ? kDLFloat
                               : std::is_signed_v<T>       ? kDLInt
                                                           : kDLUInt),
          static_cast<uint8_t>(8 * sizeof(T)), 1};
}
inline std::string dtype_name(DLDataType type) {
  if (type.code == kBoolCode) return "bool";
  const char* kind = type.code == kDLInt ? "int" : type.code == kDLUInt ? "uint" : "float";
  return kind + std::to_string(type.bits);
}
// What a plan and its sessions share.
struct PlanState {
  PlanState() = default;
  PlanState(const PlanState&) = delete;
  PlanState& operator=(const PlanState&) = delete;
  ~PlanState() {
    if (file.bytes != nullptr) qplan_file_unmap(&file);
  }
  qplan_file file = {};
  qplan_plan plan = {};
};
}  // namespace detail

// A verified plan; copies share it.
class Plan {
 public:
  // Maps a plan file. flags: QPLAN_PLAN_DIGEST also checks the SHA-256 of the file.
  static Plan map(const std::string& path, uint32_t flags = 0) {
    auto state = std::make_shared<detail::PlanState>();
    auto error = detail::sized<qplan_error>();
    detail::check(qplan_file_map(path.c_str(), &state->file, &error), error);
    return Plan(std::move(state), nullptr, 0, flags);
  }
  // Looks at bytes of the caller's, which are 64-byte aligned and outlive the plan and its sessions.
  static Plan view(const void* bytes, size_t size, uint32_t flags = 0) {
    return Plan(std::make_shared<detail::PlanState>(), bytes, size, flags);
  }

  size_t num_inputs() const { return qplan_plan_io_count(get(), nullptr, QPLAN_INPUT); }
  size_t num_outputs() const { return qplan_plan_io_count(get(), nullptr, QPLAN_OUTPUT); }
  TensorInfo input(size_t index) const { return info(QPLAN_INPUT, index); }
  TensorInfo output(size_t index) const { return info(QPLAN_OUTPUT, index); }
  // The most elementary operations of one run: docs/work.md.
  uint64_t work(const qplan_kernel_set* kernels = qplan_kernels_all()) const {
    uint64_t work = 0;
    auto error = detail::sized<qplan_error>();
    detail::check(qplan_plan_work(get(), nullptr, kernels, &work, &error), error);
    return work;
  }
  const qplan_plan* get() const { return &state_->plan; }

 private:
  friend class Session;
  Plan(std::shared_ptr<detail::PlanState> state, const void* bytes, size_t size, uint32_t flags)
      : state_(std::move(state)) {
    if (state_->file.bytes != nullptr) bytes = state_->file.bytes, size = state_->file.size;
    auto error = detail::sized<qplan_error>();
    detail::check(qplan_plan_open(&state_->plan, bytes, size, flags, &error), error);
  }
  TensorInfo info(int direction, size_t index) const {
    auto c = detail::sized<qplan_tensor_info>();
    const qplan_status status =
        qplan_plan_io_info(get(), nullptr, direction, static_cast<uint32_t>(index), &c);
    if (status < 0) throw Error(status, "plan: there is no such input or output: " + std::to_string(index));
    TensorInfo made;
    made.name = c.name;
    made.shape.assign(c.shape, c.shape + c.ndim);
    made.dtype = c.dtype;
    made.size_bytes = static_cast<size_t>(c.size_bytes);
    made.scales.assign(c.scales, c.scales + c.num_scales);
    made.zero_points.assign(c.zero_points, c.zero_points + c.num_scales);
    made.quant_axis = c.quant_axis;
    return made;
  }
  std::shared_ptr<detail::PlanState> state_;
};

struct SessionOptions {
  uint32_t threads = 1;
  uint32_t isa_limit = QPLAN_ISA_AUTO;
  uint64_t max_work = 0;                      // 0: no limit
  const qplan_kernel_set* kernels = nullptr;  // null: qplan_kernels_all()
  uint32_t log_level = QPLAN_LOG_WARNING;     // to standard error
};

class Session {
 public:
  explicit Session(Plan plan, const SessionOptions& options = {})
      : plan_(std::move(plan)), own_(std::make_unique<Own>()) {
    if (options.threads > 1) {
      auto pool = detail::sized<qplan_pool_config>();
      pool.num_threads = options.threads;
      auto error = detail::sized<qplan_error>();
      detail::check(qplan_pool_create_with(&pool, &own_->pool, &error), error);
    }
    own_->platform = detail::sized<qplan_platform>();
    own_->platform.log_level = options.log_level;
    own_->platform.log = qplan_host_log;
    own_->platform.now_ns = qplan_host_now_ns;
    own_->platform.thread_pool = own_->pool;
    auto config = detail::sized<qplan_session_config>();
    config.isa_limit = options.isa_limit;
    config.kernels = options.kernels != nullptr ? options.kernels : qplan_kernels_all();
    config.platform = &own_->platform;
    config.max_work = options.max_work;
    auto error = detail::sized<qplan_error>();
    detail::check(qplan_host_session_create(plan_.get(), &config, &own_->session, &error), error);
  }

  Session(Session&&) = default;
  Session& operator=(Session&& other) noexcept {  // the old session goes before its plan
    std::swap(plan_, other.plan_);
    std::swap(own_, other.own_);
    return *this;
  }

  // The session's own memory of an input or output, as elements of T: the dtype must be the plan's.
  template <typename T>
  span<T> input(size_t index = 0) {
    return elements<T>(QPLAN_INPUT, index);
  }
  template <typename T>
  span<const T> output(size_t index = 0) {
    const span<T> found = elements<T>(QPLAN_OUTPUT, index);
    return span<const T>(found.data(), found.size());
  }
  void run() { check(qplan_session_invoke(get())); }
  // Copies the inputs in, runs: session.run(image) for networks of one input.
  template <typename T>
  void run(span<const T> first_input) {
    const span<T> to = input<T>(0);
    if (first_input.size() != to.size()) {
      throw Error(QPLAN_SHAPE_MISMATCH, "input 0 has " + std::to_string(to.size()) + " elements, found " +
                                            std::to_string(first_input.size()));
    }
    std::memcpy(to.data(), first_input.data(), to.size() * sizeof(T));
    run();
  }
  // To its first values, what the network keeps from run to run.
  void reset_state() { check(qplan_session_reset_state(get())); }
  // Throws QPLAN_SELF_CHECK_FAILED, with the step and its text, unless the plan computes here what it
  // computed when it was packed; QPLAN_NOT_FOUND for a plan without self-checks. Inputs and states are lost.
  void self_check() { check(qplan_session_self_check(get())); }
  // From any thread: ends the run in progress, which throws QPLAN_CANCELLED.
  void cancel() { check(qplan_session_cancel(get())); }
  qplan_session_info info() const {
    auto info = detail::sized<qplan_session_info>();
    check(qplan_session_get_info(get(), &info));
    return info;
  }
  const Plan& plan() const { return plan_; }
  qplan_session* get() const { return qplan_host_session_get(own_->session); }  // for the C API

 private:
  struct Own {  // at one address, which the session keeps
    Own() = default;
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
    ~Own() {
      qplan_host_session_destroy(session);
      if (pool != nullptr) qplan_pool_destroy(pool);
    }
    qplan_platform platform = {};
    const qplan_thread_pool* pool = nullptr;
    qplan_host_session* session = nullptr;
  };

  void check(qplan_status status) const {
    if (status >= 0) return;
    auto error = detail::sized<qplan_error>();
    qplan_session_last_error(get(), &error);
    throw Error(status, error.text, error.step, error.tensor);
  }
  template <typename T>
  span<T> elements(int direction, size_t index) {
    DLTensor view = {};
    check(qplan_session_view(get(), direction, static_cast<uint32_t>(index), &view));
    const DLDataType wanted = detail::dtype_of<T>();
    if (view.dtype.code != wanted.code || view.dtype.bits != wanted.bits) {
      throw Error(QPLAN_DTYPE_MISMATCH, std::string(direction == QPLAN_INPUT ? "input " : "output ") +
                                            std::to_string(index) + " is " + detail::dtype_name(view.dtype) +
                                            ", found " + detail::dtype_name(wanted));
    }
    size_t count = 1;
    for (int32_t i = 0; i < view.ndim; ++i) count *= static_cast<size_t>(view.shape[i]);
    return span<T>(static_cast<T*>(view.data), count);
  }

  Plan plan_;  // destroyed last
  std::unique_ptr<Own> own_;
};

}  // namespace run_v1_*
}  // namespace qplan

#endif  // QPLAN_QPLAN_HPP_
