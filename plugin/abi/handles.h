#pragma once
// Handles are values of kind, slot and generation. A stale or foreign one is recognised without touching
// freed memory.
//
//   bits 60-63 kind | 54-59 context slot | 40-53 context generation | 20-39 slot in the context | 0-19
//   generation of that slot
//
// Generations begin at 1, so a handle of zero is never valid. They never wrap: a slot with a spent generation
// is not used again, so a stale handle never names a later object.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace imprint::abi {

enum class HandleKind : std::uint8_t { context = 1, brain = 2, agent = 3, tensor = 4, model = 5 };

struct HandleParts {
  HandleKind kind = HandleKind::context;
  std::uint32_t context_slot = 0;        // < kContextSlots
  std::uint32_t context_generation = 0;  // 1 .. kContextGenerations
  std::uint32_t slot = 0;                // 0 for a context
  std::uint32_t generation = 0;          // 1 .. kGenerations; 1 for a context
};

inline constexpr std::uint32_t kContextSlots = 64;
inline constexpr std::uint32_t kContextGenerations = (1u << 14) - 1;
inline constexpr std::uint32_t kSlots = 1u << 20;
inline constexpr std::uint32_t kGenerations = (1u << 20) - 1;

constexpr std::uint64_t pack_handle(const HandleParts& parts) {
  return std::uint64_t{static_cast<std::uint8_t>(parts.kind)} << 60 |
         std::uint64_t{parts.context_slot} << 54 | std::uint64_t{parts.context_generation} << 40 |
         std::uint64_t{parts.slot} << 20 | parts.generation;
}

constexpr HandleParts unpack_handle(std::uint64_t id) {
  return {static_cast<HandleKind>(id >> 60), static_cast<std::uint32_t>(id >> 54 & 63),
          static_cast<std::uint32_t>(id >> 40 & 0x3FFF), static_cast<std::uint32_t>(id >> 20 & 0xFFFFF),
          static_cast<std::uint32_t>(id & 0xFFFFF)};
}

// Values in slots that keep their index. Not synchronised.
template <class T>
class HandleTable {
 public:
  struct Place {
    std::uint32_t slot = 0, generation = 0;
  };

  // .second is false when all kSlots are taken or spent.
  std::pair<Place, bool> insert(T value) {
    std::uint32_t slot;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else if (slots_.size() < kSlots) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      return {Place{}, false};
    }
    Slot& entry = slots_[slot];
    entry.value = std::move(value);
    ++entry.generation;
    entry.live = true;
    return {Place{slot, entry.generation}, true};
  }

  T* find(std::uint32_t slot, std::uint32_t generation) {
    if (slot >= slots_.size() || !slots_[slot].live || slots_[slot].generation != generation) return nullptr;
    return &slots_[slot].value;
  }

  // Empties a live slot and returns its value.
  T take(std::uint32_t slot) {
    slots_[slot].live = false;
    if (slots_[slot].generation < kGenerations) free_.push_back(slot);
    return std::exchange(slots_[slot].value, T{});
  }

  void erase(std::uint32_t slot) { (void)take(slot); }

  template <class Use>
  void each(Use&& use) {
    for (Slot& slot : slots_)
      if (slot.live) use(slot.value);
  }

  template <class Predicate>
  void erase_if(Predicate&& predicate) {
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
      if (slots_[slot].live && predicate(slots_[slot].value)) erase(slot);
  }

 private:
  struct Slot {
    T value{};
    std::uint32_t generation = 0;
    bool live = false;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace imprint::abi
