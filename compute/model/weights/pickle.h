#pragma once
// Private: Python's pickles as PyTorch writes them, read without running them. A pickle is a program for a
// stack machine that may call any function. This machine knows containers, numbers, strings, and the
// functions that make tensors; a call of anything else gives a value that holds nothing.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "compute/model/weights/reader.h"

namespace imprint::weights {

enum class Kind : std::uint8_t {
  nothing,
  boolean,
  whole,
  real,
  words,
  list,
  tuple,
  dictionary,
  global,
  storage,
  tensor,
  unknown
};

// A dictionary has its keys and values in turn in `parts`. Values may contain themselves.
struct PickleValue {
  Kind kind = Kind::nothing;
  std::int64_t whole = 0;  // a boolean or whole number; the elements of a storage; a tensor's offset
  double real = 0;
  std::string words;  // also the name of a global; of an unknown value: the call that made it
  std::vector<PickleValue*> parts;
  std::string key;                             // of a storage, also of the tensor's
  std::string element;                         // of a storage: "FloatStorage"
  std::vector<std::int64_t> extents, strides;  // of a tensor
};

// Values live as long as the machine.
class PickleMachine {
 public:
  explicit PickleMachine(Allowance& allowance) : allowance_(allowance) {}
  // One pickle; the cursor is behind it then.
  const PickleValue* run(Cursor& cursor);
  const std::deque<PickleValue>& values() const { return values_; }  // of all pickles

 private:
  PickleValue* make(Kind kind);
  PickleValue* top();
  PickleValue* pop();
  void push(PickleValue* value);
  std::vector<PickleValue*> since_mark();
  void push_words(std::string_view words);
  void push_whole(std::int64_t value);
  void remember(std::uint64_t slot);
  void recall(std::uint64_t slot);
  void append(PickleValue* list, const std::vector<PickleValue*>& parts);
  PickleValue* storage(const PickleValue& id);
  PickleValue* called(const PickleValue& function, const PickleValue& arguments);
  PickleValue* tensor(const PickleValue& arguments);
  bool simple(std::uint8_t code, Cursor& cursor);
  bool container(std::uint8_t code);
  bool memory(std::uint8_t code, Cursor& cursor);
  void step(std::uint8_t code, Cursor& cursor);

  Allowance& allowance_;
  std::deque<PickleValue> values_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, PickleValue*> memo_;
};

}  // namespace imprint::weights
