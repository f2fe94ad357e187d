// Which sanitizers this build has. GCC says it in macros, clang answers __has_feature.
#ifndef QPLAN_TESTS_SUPPORT_SANITIZERS_H_
#define QPLAN_TESTS_SUPPORT_SANITIZERS_H_

#ifdef __has_feature
#define QPLAN_HAS_FEATURE(name) __has_feature(name)
#else
#define QPLAN_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || QPLAN_HAS_FEATURE(address_sanitizer)
#define QPLAN_ASAN 1
#else
#define QPLAN_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || QPLAN_HAS_FEATURE(thread_sanitizer)
#define QPLAN_TSAN 1
#else
#define QPLAN_TSAN 0
#endif

#endif  // QPLAN_TESTS_SUPPORT_SANITIZERS_H_
