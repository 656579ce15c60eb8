#pragma once
// Tables of objects by their address, for walks over large graphs. Look up only: they have no order.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace imprint {

// Constant time each, without an allocation per object: open addressing in a table that is at most half full.
// No key is null. An insertion invalidates pointers to values.
template <class Object, class Value>
class PointerMap {
 public:
  void reserve(std::size_t count) {
    std::size_t size = kLeast;
    while (size < 2 * count) size *= 2;
    if (size > table_.size()) resize(size);
  }

  // The object's value, and whether it is new.
  std::pair<Value*, bool> try_emplace(const Object* object, Value value) {
    if (2 * (count_ + 1) > table_.size()) resize(table_.empty() ? kLeast : 2 * table_.size());
    Slot& slot = table_[slot_of(object)];
    if (slot.object == object) return {&slot.value, false};
    slot = {object, std::move(value)};
    ++count_;
    return {&slot.value, true};
  }
  Value& operator[](const Object* object) { return *try_emplace(object, Value()).first; }

  // Null for an object that the table lacks.
  Value* find(const Object* object) { return const_cast<Value*>(std::as_const(*this).find(object)); }
  const Value* find(const Object* object) const {
    if (count_ == 0) return nullptr;
    const Slot& slot = table_[slot_of(object)];
    return slot.object == object ? &slot.value : nullptr;
  }
  bool contains(const Object* object) const { return find(object) != nullptr; }
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    const Object* object = nullptr;  // null: free
    Value value{};
  };
  static constexpr std::size_t kLeast = 16;

  std::size_t slot_of(const Object* object) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot =
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object) >> 4) * 0x9e3779b97f4a7c15u >>
            32 &
        mask;
    while (table_[slot].object && table_[slot].object != object) slot = (slot + 1) & mask;
    return slot;
  }

  void resize(std::size_t size) {
    std::vector<Slot> old(size);
    old.swap(table_);
    for (Slot& slot : old)
      if (slot.object) table_[slot_of(slot.object)] = std::move(slot);
  }

  std::vector<Slot> table_;  // its size is a power of two
  std::size_t count_ = 0;
};

template <class Object>
class PointerSet {
 public:
  // False if it was there.
  bool insert(const Object* object) { return objects_.try_emplace(object, {}).second; }
  bool contains(const Object* object) const { return objects_.contains(object); }
  void reserve(std::size_t count) { objects_.reserve(count); }

 private:
  struct Nothing {};
  PointerMap<Object, Nothing> objects_;
};

}  // namespace imprint
