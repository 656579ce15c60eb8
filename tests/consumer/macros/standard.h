/* The standard headers that Imprint's headers include. They come before the macros, which would break some.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
#include <cassert>
#if __cplusplus >= 202002L
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
#endif
#endif
