#pragma once
// Imprint's messages go to a function. This library prints nothing; the plugin prints where a host takes no
// messages (plugin/abi/stderr_log.h).

#include <string_view>

namespace imprint {

enum class LogLevel { debug = 0, info = 1, warning = 2, error = 3 };

// A borrowed callback with its user pointer. Called from any thread. Imprint holds no lock during the call.
struct LogSink {
  void (*function)(void* user, LogLevel level, std::string_view message) = nullptr;
  void* user = nullptr;

  void operator()(LogLevel level, std::string_view message) const {
    if (function) function(user, level, message);
  }
};

}  // namespace imprint
