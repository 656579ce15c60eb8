#include "plugin/abi/stderr_log.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

namespace imprint::abi {
namespace {

struct Level {
  std::string_view name;
  int least;  // LogLevel that is printed
};
constexpr Level kLevels[] = {{"debug", 0}, {"info", 1}, {"warning", 2}, {"error", 3}, {"off", 4}};
constexpr const Level& kDefault = kLevels[2];

// One call, so that lines of several threads do not mix.
void print(LogLevel level, std::string_view message) {
  std::string line = "imprint: ";
  line += kLevels[static_cast<int>(level)].name;
  line += ": ";
  line += message;
  line += '\n';
  (void)std::fputs(line.c_str(), stderr);
}

LogSink sink_of(const Level& level) {
  if (level.least > static_cast<int>(LogLevel::error)) return {};
  return {[](void* user, LogLevel given, std::string_view message) {
            if (static_cast<int>(given) >= static_cast<const Level*>(user)->least) print(given, message);
          },
          const_cast<Level*>(&level)};
}

}  // namespace

LogSink stderr_log() {
  const char* const given = std::getenv("IMPRINT_LOG");
  if (!given || !*given) return sink_of(kDefault);
  for (const Level& level : kLevels)
    if (level.name == given) return sink_of(level);
  print(LogLevel::warning, std::string("IMPRINT_LOG: found '") + given +
                               "', expected off, error, warning, info or debug. Takes warning.");
  return sink_of(kDefault);
}

}  // namespace imprint::abi
