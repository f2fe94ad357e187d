#include "tools/session.h"

#include <sched.h>

#include <algorithm>
#include <string_view>

#include "tools/command.h"
#include "tools/number_option.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxIsa = 255;  // every QPLAN_ISA_* is smaller

void no_pool(const qplan_thread_pool*) {}

// The error of a session that is not made is the command's own message, and needs no second line in the log.
thread_local bool is_making_session = false;

void log_line(void*, uint32_t level, const char* text) {
  if (level == QPLAN_LOG_ERROR && is_making_session) return;
  qplan_host_log(nullptr, level, text);
}

}  // namespace

void add_session_options(CLI::App& command, SessionOptions& options) {
  const CLI::Option* threads =
      command.add_option("--threads", options.threads, "Threads that work on one inference (default 1)")
          ->type_name("N")
          ->transform(whole_number())
          ->check([](const std::string& text) {
            uint32_t value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= 1 && value <= kMaxThreads)
              return std::string();
            return "'" + text + "' is not a number of threads from 1 to " + std::to_string(kMaxThreads);
          });
  command
      .add_option_function<std::string>(
          "--affinity",
          [&options, threads](const std::string& text) {
            options.processors = parse_processors(text);
            if (threads->count() == 0) options.threads = static_cast<uint32_t>(options.processors.size());
          },
          "Processors of the threads, one for each: 4-7, or 0,2 (Linux's numbers); as many threads as those, "
          "without --threads. Threads may share one: 0,0")
      ->type_name("LIST");
  command
      .add_option("--isa", options.isa,
                  "Use no instructions beyond this set (default auto: the best of this machine); the results "
                  "are the same")
      ->type_name("ISA:{" + known_isas(false, ",") + ",auto}");
  command
      .add_option("--pool", options.pool,
                  "What runs the threads: threads (sleeps when idle) or openmp (default threads)")
      ->type_name("POOL:{threads,openmp}")
      ->check([](const std::string& text) {
        if (text == "threads" || text == "openmp") return std::string();
        return "unknown pool '" + text + "', expected threads or openmp";
      });
  add_max_work_option(command, options.max_work);
  add_npu_options(command, options.npu);
}

std::vector<NamedFile> input_files(const SessionOptions& options, std::vector<NamedFile> others,
                                   const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) others.push_back({"--input", input});
  if (is_driver_library(options.npu)) others.push_back({"--driver", driver_name(options.npu)});
  others.push_back({"--custom-operators", options.custom_operators});
  return others;
}

std::vector<uint32_t> parse_processors(const std::string& text) {
  std::vector<uint32_t> processors;
  const auto number = [&](const std::string& digits) {
    uint32_t value = 0;
    if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos) {
      throw UsageError("--affinity: found '" + text + "', expected processors like 4-7 or 0,2");
    }
    for (const char digit : digits) value = value * 10 + static_cast<uint32_t>(digit - '0');
    return value;
  };
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t dash = part.find('-');
    const uint32_t first = number(part.substr(0, dash));
    const uint32_t last = dash == std::string::npos ? first : number(part.substr(dash + 1));
    if (last >= CPU_SETSIZE) {
      throw UsageError("--affinity: found processor " + std::to_string(last) + ", expected one below " +
                       std::to_string(CPU_SETSIZE) + "; qplan names no others");
    }
    if (last < first || processors.size() + (last - first + 1) > kMaxThreads) {
      throw UsageError("--affinity: found '" + text + "', expected at most " + std::to_string(kMaxThreads) +
                       " processors, the lower number of a range first");
    }
    for (uint32_t processor = first; processor <= last; ++processor) processors.push_back(processor);
    begin = end + 1;
  }
  return processors;
}

void add_custom_operators_option(CLI::App& command, std::string& path) {
  command
      .add_option("--custom-operators", path,
                  "A shared library with operators that qplan does not have (docs/custom-operators.md)")
      ->type_name("LIB");
}

CustomOperators::CustomOperators(const std::string& path) {
  qplan_error error = make_error();
  const char* library = path.empty() ? nullptr : path.c_str();
  check(qplan_host_custom_operators_load(library, &operators, &count, &error), error, "");
}

void add_max_work_option(CLI::App& command, uint64_t& max_work) {
  command
      .add_option("--max-work", max_work,
                  "Refuse a plan that computes more than so many elementary operations in one inference, as "
                  "`qplan inspect` counts them (default 0: no limit)")
      ->type_name("N")
      ->transform(whole_number());
}

std::string known_isas(bool available, const std::string& between) {
  std::string names;
  for (uint32_t isa = QPLAN_ISA_REFERENCE; isa <= kMaxIsa; ++isa) {
    const char* name = qplan_isa_name(isa);
    if (name != nullptr && (!available || qplan_isa_available(isa) != 0))
      names += (names.empty() ? "" : between) + std::string(name);
  }
  return names;
}

std::string available_isas() { return known_isas(true); }

uint32_t parse_isa(const std::string& name) {
  uint32_t isa = QPLAN_ISA_AUTO;
  if (qplan_isa_from_name(name.c_str(), &isa) < 0) {
    throw UsageError("--isa: unknown instruction set '" + name + "'; this machine has " + available_isas());
  }
  if (isa != QPLAN_ISA_AUTO && qplan_isa_available(isa) == 0) {
    throw Failure("--isa: this machine or build lacks '" + name + "'; it has " + available_isas());
  }
  return isa;
}

Session::Session(const PlanFile& plan, const SessionOptions& options, qplan_platform* hooks)
    : label_("'" + plan.path() + "'"),
      pool_(nullptr, no_pool),
      own_platform_{},
      npu_(plan, options.npu, hooks),
      host_session_(nullptr, qplan_host_session_destroy) {
  if (!options.processors.empty()) {
    pin(options);
  } else if (options.pool == "openmp") {
    pool_ = Pool(qplan_openmp_pool_create(options.threads), qplan_openmp_pool_destroy);
  } else if (options.threads > 1) {
    make_pool(options);
  }
  if (pool_ == nullptr && options.pool == "openmp") {
    throw Failure("a pool of " + std::to_string(options.threads) + " threads cannot be made: out of memory");
  }
  own_platform_.struct_size = sizeof own_platform_;
  qplan_platform* platform = hooks != nullptr ? hooks : &own_platform_;
  platform->thread_pool = options.wrap_pool ? options.wrap_pool(pool_.get()) : pool_.get();

  qplan_session_config config{};
  config.struct_size = sizeof config;
  config.isa_limit = parse_isa(options.isa);
  const CustomOperators custom(options.custom_operators);
  config.kernels = qplan_kernels_with_custom(&kernels_, qplan_kernels_all(), custom.operators, custom.count);
  config.platform = platform;
  config.max_work = options.max_work;
  npu_.configure(&config);
  qplan_host_session* host_session = nullptr;
  qplan_error error = make_error();
  const uint64_t begin = qplan_host_now_ns(nullptr);
  is_making_session = true;
  const qplan_status status = qplan_host_session_create(&plan.plan(), &config, &host_session, &error);
  is_making_session = false;
  check(status, error, label_);
  init_ns_ = qplan_host_now_ns(nullptr) - begin;
  host_session_.reset(host_session);
  session_ = qplan_host_session_get(host_session);
}

void Session::pin(const SessionOptions& options) {
  if (options.pool == "openmp") {
    throw UsageError("--affinity: found --pool openmp, expected threads; OMP_PLACES has OpenMP's processors");
  }
  if (options.processors.size() != options.threads) {
    throw UsageError("--affinity: found " + count_text(options.processors.size(), "processor", "processors") +
                     " and " + count_text(options.threads, "thread", "threads") + ", expected one for each");
  }
  (void)usable_cpus();  // those of the process, of which this thread has one from now on
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(options.processors.front(), &first);  // parse_processors has checked it
  if (::sched_setaffinity(0, sizeof first, &first) != 0) {
    throw Failure("--affinity: no thread may run on processor " + std::to_string(options.processors.front()) +
                  " of this machine");
  }
  if (options.threads > 1) make_pool(options);
}

void Session::make_pool(const SessionOptions& options) {
  qplan_pool_config config{};
  config.struct_size = sizeof config;
  config.num_threads = options.threads;
  config.processors = options.processors.data();
  config.num_processors = static_cast<uint32_t>(options.processors.size());
  const qplan_thread_pool* pool = nullptr;
  qplan_error error = make_error();
  tools::check(qplan_pool_create_with(&config, &pool, &error), error,
               options.processors.empty() ? "--threads" : "--affinity");
  pool_ = Pool(pool, qplan_pool_destroy);
}

void Session::check_call(qplan_status status) const {
  if (status >= 0) return;
  qplan_error error = make_error();
  qplan_session_last_error(session_, &error);
  check(status, error, label_);
}

void Session::write(uint32_t input, const DLTensor& tensor) {
  check_call(qplan_session_write(session_, input, &tensor));
}
void Session::read(uint32_t output, const DLTensor& tensor) {
  check_call(qplan_session_read(session_, output, &tensor));
}
void Session::invoke() { check_call(qplan_session_invoke(session_)); }

void Session::reset_state() { check_call(qplan_session_reset_state(session_)); }

void Session::close() {
  session_ = nullptr;
  host_session_.reset();
  npu_.close();
  const std::string error = npu_.write_error();
  if (!error.empty()) throw Failure(error);
}

qplan_session_info Session::info() const {
  qplan_session_info info{};
  info.struct_size = sizeof info;
  check_call(qplan_session_get_info(session_, &info));
  return info;
}

qplan_event Session::step(uint32_t index) const {
  qplan_event event{};
  event.struct_size = sizeof event;
  check_call(qplan_session_step_info(session_, index, &event));
  return event;
}

qplan_platform make_platform(uint32_t log_level) {
  qplan_platform platform{};
  platform.struct_size = sizeof platform;
  platform.log_level = log_level;
  platform.log = log_line;
  platform.now_ns = qplan_host_now_ns;
  return platform;
}

}  // namespace qplan::tools
