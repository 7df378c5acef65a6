// Which of the sanitizers this is built with: GCC says it by macros, Clang by features.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define PROCESS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define PROCESS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define PROCESS_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__)
#define PROCESS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define PROCESS_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define PROCESS_THREAD_SANITIZER 0
#endif

namespace process {

inline constexpr bool kAddressSanitizer = PROCESS_ADDRESS_SANITIZER;
inline constexpr bool kThreadSanitizer = PROCESS_THREAD_SANITIZER;
// Either keeps freed memory, to see who uses it.
inline constexpr bool kKeepsFreedMemory = kAddressSanitizer || kThreadSanitizer;

}  // namespace process
