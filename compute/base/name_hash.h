#pragma once
// Tables of names that a file chooses. The hash is SipHash-1-3 (Aumasson and Bernstein, 2012) under a key
// that each process draws, so no file can make its names collide. Look up only: the order of such a table
// differs from process to process.

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace imprint {

struct SipKey {
  std::uint64_t low = 0, high = 0;
};

namespace detail {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }
};

// The lowest byte first.
inline std::uint64_t word_of(const char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i)
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return word;
}

inline SipKey drawn_key() {
  try {
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    return {word(), word()};
  } catch (const std::exception&) {  // a system without randomness
    static const char kPlace = 0;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return {static_cast<std::uint64_t>(now), reinterpret_cast<std::uintptr_t>(&kPlace)};
  }
}

}  // namespace detail

inline std::uint64_t siphash(SipKey key, std::string_view text, int rounds_per_word, int rounds_at_end) {
  detail::SipState state{key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du,
                         key.low ^ 0x6c7967656e657261u, key.high ^ 0x7465646279746573u};
  const auto take = [&](std::uint64_t word) {
    state.v3 ^= word;
    state.rounds(rounds_per_word);
    state.v0 ^= word;
  };
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(detail::word_of(text.data() + at, 8));
  take(detail::word_of(text.data() + at, text.size() - at) | std::uint64_t{text.size() & 255} << 56);
  state.v2 ^= 0xff;
  state.rounds(rounds_at_end);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

// Not noexcept, so that tables keep the hashes of their names.
struct NameHash {
  std::size_t operator()(std::string_view name) const {
    static const SipKey key = detail::drawn_key();
    return static_cast<std::size_t>(siphash(key, name, 1, 3));
  }
};

// Without an allocation per name: open addressing in a table that is at most half full. An insertion
// invalidates pointers to values.
template <class T>
class NameMap {
 public:
  void reserve(std::size_t count) {
    entries_.reserve(count);
    resize(std::bit_ceil(2 * count + 2));
  }
  T& operator[](std::string_view name) {
    if (2 * (entries_.size() + 1) > table_.size()) resize(table_.empty() ? 16 : 2 * table_.size());
    const std::size_t hash = NameHash()(name);
    std::uint32_t& place = place_of(name, hash);
    if (place == 0) {
      entries_.push_back({name, hash, T()});
      place = static_cast<std::uint32_t>(entries_.size());
    }
    return entries_[place - 1].value;
  }
  // Null for a name that the table lacks.
  const T* find(std::string_view name) const {
    if (entries_.empty()) return nullptr;
    const std::uint32_t place = const_cast<NameMap&>(*this).place_of(name, NameHash()(name));
    return place == 0 ? nullptr : &entries_[place - 1].value;
  }

 private:
  struct Entry {
    std::string_view name;
    std::size_t hash;
    T value;
  };

  std::uint32_t& place_of(std::string_view name, std::size_t hash) {
    std::size_t slot = hash & (table_.size() - 1);
    for (; table_[slot] != 0; slot = (slot + 1) & (table_.size() - 1)) {
      const Entry& entry = entries_[table_[slot] - 1];
      if (entry.hash == hash && entry.name == name) break;
    }
    return table_[slot];
  }

  void resize(std::size_t size) {
    if (size <= table_.size()) return;
    table_.assign(size, 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::size_t slot = entries_[i].hash & (size - 1);
      while (table_[slot] != 0) slot = (slot + 1) & (size - 1);
      table_[slot] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> table_;  // 1 + the entry's place; 0: free. Its size is a power of two
};
using NameSet = std::unordered_set<std::string_view, NameHash>;

}  // namespace imprint
