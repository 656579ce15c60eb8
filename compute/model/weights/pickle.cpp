// Opcodes: https://github.com/python/cpython/blob/main/Lib/pickletools.py

#include "compute/model/weights/pickle.h"

#include <charconv>

#include "compute/base/quote.h"

namespace imprint::weights {
namespace {

constexpr std::size_t kLongestWords = 1 << 20;
constexpr std::size_t kSlotBytes = 64;  // of a map's entry

std::int64_t integer_of(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) corrupt("a pickle with a damaged number");
  return value;
}

std::vector<std::int64_t> wholes_of(const PickleValue& list) {
  std::vector<std::int64_t> out;
  if (list.kind != Kind::tuple && list.kind != Kind::list) corrupt("a tensor whose shape is no tuple");
  if (list.parts.size() > 64) lacking(text("a tensor of rank ", list.parts.size(), ", expected at most 64"));
  for (const PickleValue* part : list.parts) {
    if (part->kind != Kind::whole) corrupt("a tensor whose shape is no list of whole numbers of 64 bits");
    out.push_back(part->whole);
  }
  return out;
}

}  // namespace

PickleValue* PickleMachine::make(Kind kind) {
  allowance_.take(sizeof(PickleValue) + 32);
  PickleValue& value = values_.emplace_back();
  value.kind = kind;
  return &value;
}

PickleValue* PickleMachine::top() {
  if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
    corrupt("a pickle that takes more from its stack than it put there");
  return stack_.back();
}

PickleValue* PickleMachine::pop() {
  PickleValue* value = top();
  stack_.pop_back();
  return value;
}

void PickleMachine::push(PickleValue* value) {
  allowance_.take(2 * sizeof(void*));
  stack_.push_back(value);
}

std::vector<PickleValue*> PickleMachine::since_mark() {
  if (marks_.empty() || marks_.back() > stack_.size()) corrupt("a pickle without a mark");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleValue*> out(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return out;
}

void PickleMachine::push_words(std::string_view words) {
  if (words.size() > kLongestWords)
    lacking(text("a string of ", words.size(), " bytes, expected at most ", kLongestWords));
  PickleValue* value = make(Kind::words);
  allowance_.take(words.size());
  value->words = words;
  push(value);
}

void PickleMachine::push_whole(std::int64_t number) {
  PickleValue* value = make(Kind::whole);
  value->whole = number;
  push(value);
}

void PickleMachine::remember(std::uint64_t slot) {
  allowance_.take(kSlotBytes);
  memo_[slot] = top();
}

void PickleMachine::recall(std::uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) corrupt("a pickle that recalls what it never kept");
  push(found->second);
}

void PickleMachine::append(PickleValue* list, const std::vector<PickleValue*>& parts) {
  allowance_.take(2 * sizeof(void*) * parts.size());
  if (list->kind == Kind::list || list->kind == Kind::dictionary)
    list->parts.insert(list->parts.end(), parts.begin(), parts.end());
  else if (list->kind != Kind::unknown)
    corrupt("a pickle that adds to no container");
}

// ('storage', class, key, location, elements), and what older files add. The location is a device of the
// computer that wrote the file.
PickleValue* PickleMachine::storage(const PickleValue& id) {
  const bool fits = id.kind == Kind::tuple && id.parts.size() >= 5 && id.parts[0]->kind == Kind::words &&
                    id.parts[0]->words == "storage" && id.parts[1]->kind == Kind::global &&
                    id.parts[2]->kind == Kind::words && id.parts[4]->kind == Kind::whole &&
                    id.parts[4]->whole >= 0;
  if (!fits) lacking("a pickle that refers to something else than a tensor's storage");
  if (id.parts[1]->words.size() > kLongestName || id.parts[2]->words.size() > kLongestName)
    lacking("a storage with a long name in a pickle");
  PickleValue* out = make(Kind::storage);
  allowance_.take(id.parts[1]->words.size() + id.parts[2]->words.size());
  out->element = id.parts[1]->words;
  out->key = id.parts[2]->words;
  out->whole = id.parts[4]->whole;
  // A view of another storage, as files before 1.6 may have.
  if (id.parts.size() > 5 && id.parts[5]->kind != Kind::nothing) lacking("a storage that is part of another");
  return out;
}

// (storage, offset, extents, strides, ...)
PickleValue* PickleMachine::tensor(const PickleValue& arguments) {
  const std::vector<PickleValue*>& parts = arguments.parts;
  if (parts.size() < 4 || parts[0]->kind != Kind::storage || parts[1]->kind != Kind::whole)
    corrupt("a tensor without its storage");
  PickleValue* out = make(Kind::tensor);
  allowance_.take(parts[0]->key.size() + parts[0]->element.size());
  out->key = parts[0]->key;
  out->element = parts[0]->element;
  out->whole = parts[1]->whole;
  out->extents = wholes_of(*parts[2]);
  out->strides = wholes_of(*parts[3]);
  allowance_.take(16 * (out->extents.size() + out->strides.size()));
  return out;
}

// The allow-list.
PickleValue* PickleMachine::called(const PickleValue& function, const PickleValue& arguments) {
  if (arguments.kind != Kind::tuple) corrupt("a call without arguments");
  if (function.kind == Kind::global) {
    const std::string& name = function.words;
    if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor")
      return tensor(arguments);
    if ((name == "torch._utils._rebuild_parameter" || name == "torch.nn.parameter.Parameter") &&
        !arguments.parts.empty())
      return arguments.parts[0];
    if (name == "torch.Size" && arguments.parts.size() == 1) return arguments.parts[0];
    if (name == "collections.OrderedDict") {
      PickleValue* out = make(Kind::dictionary);
      // Python 2 gives a list of pairs.
      if (arguments.parts.size() == 1 && arguments.parts[0]->kind == Kind::list) {
        const std::vector<PickleValue*>& pairs = arguments.parts[0]->parts;
        allowance_.take(sizeof(void*) * pairs.size());  // one list may be the argument of many calls
        for (const PickleValue* pair : pairs)
          if (pair->parts.size() == 2) append(out, pair->parts);
      }
      return out;
    }
  }
  PickleValue* out = make(Kind::unknown);
  const bool named = function.kind == Kind::global || function.kind == Kind::unknown;
  out->words = named ? clipped(function.words) : "?";  // for messages
  allowance_.take(out->words.size());
  return out;
}

bool PickleMachine::simple(std::uint8_t code, Cursor& cursor) {
  switch (code) {
    case 'N':
      push(make(Kind::nothing));
      return true;
    case 0x88:
    case 0x89:
      push(make(Kind::boolean));
      top()->whole = code == 0x88;
      return true;
    case 'J':
      push_whole(cursor.number<std::int32_t>());
      return true;
    case 'K':
      push_whole(cursor.number<std::uint8_t>());
      return true;
    case 'M':
      push_whole(cursor.number<std::uint16_t>());
      return true;
    case 0x8a: {  // a whole number of n bytes; of one that may not fit 64 bits nothing can be made
      const Bytes bytes = cursor.take(cursor.number<std::uint8_t>());
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < bytes.size() && i < 8; ++i)
        value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
      if (!bytes.empty() && bytes.size() < 8 && (std::to_integer<int>(bytes.back()) & 128) != 0)
        value |= ~std::uint64_t{0} << (8 * bytes.size());
      if (bytes.size() > 8)
        push(make(Kind::real));
      else
        push_whole(static_cast<std::int64_t>(value));
      return true;
    }
    case 'I': {
      const std::string_view digits = cursor.line();
      if (digits == "00" || digits == "01") {
        push(make(Kind::boolean));
        top()->whole = digits == "01";
      } else {
        push_whole(integer_of(digits));
      }
      return true;
    }
    case 'L': {
      const std::string_view digits = cursor.line();
      push_whole(integer_of(digits.substr(0, digits.find('L'))));
      return true;
    }
    case 'G': {  // big-endian
      std::uint64_t bits = 0;
      for (const std::byte byte : cursor.take(8)) bits = bits << 8 | std::to_integer<std::uint64_t>(byte);
      push(make(Kind::real));
      std::memcpy(&top()->real, &bits, sizeof bits);
      return true;
    }
    case 'X':
    case 'T':
    case 'B':
      push_words(cursor.words(cursor.number<std::uint32_t>()));
      return true;
    case 0x8c:
    case 'U':
    case 'C':
      push_words(cursor.words(cursor.number<std::uint8_t>()));
      return true;
    case 0x8d:
    case 0x8e:
      push_words(cursor.words(cursor.number<std::uint64_t>()));
      return true;
    case 'V':
      push_words(cursor.line());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::container(std::uint8_t code) {
  const auto tuple_of = [&](std::vector<PickleValue*> parts) {
    PickleValue* out = make(Kind::tuple);
    allowance_.take(sizeof(void*) * parts.size());
    out->parts = std::move(parts);
    push(out);
  };
  switch (code) {
    case '}':
      push(make(Kind::dictionary));
      return true;
    case ']':
      push(make(Kind::list));
      return true;
    case ')':
      push(make(Kind::tuple));
      return true;
    case '(':
      allowance_.take(2 * sizeof(std::size_t));
      marks_.push_back(stack_.size());
      return true;
    case 't':
      tuple_of(since_mark());
      return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<PickleValue*> parts(static_cast<std::size_t>(code - 0x84));
      for (std::size_t i = parts.size(); i > 0; --i) parts[i - 1] = pop();
      tuple_of(std::move(parts));
      return true;
    }
    case 'l':
    case 'd': {
      const std::vector<PickleValue*> parts = since_mark();
      PickleValue* out = make(code == 'l' ? Kind::list : Kind::dictionary);
      append(out, parts);
      push(out);
      return true;
    }
    case 'a': {
      PickleValue* part = pop();
      append(top(), {part});
      return true;
    }
    case 's': {
      PickleValue *value = pop(), *key = pop();
      append(top(), {key, value});
      return true;
    }
    case 'e':
    case 'u': {
      const std::vector<PickleValue*> parts = since_mark();
      if (code == 'u' && parts.size() % 2 != 0) corrupt("a dictionary with a key too many");
      append(top(), parts);
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::memory(std::uint8_t code, Cursor& cursor) {
  switch (code) {
    case 'q':
      remember(cursor.number<std::uint8_t>());
      return true;
    case 'r':
      remember(cursor.number<std::uint32_t>());
      return true;
    case 'p':
      remember(static_cast<std::uint64_t>(integer_of(cursor.line())));
      return true;
    case 0x94:
      remember(memo_.size());
      return true;
    case 'h':
      recall(cursor.number<std::uint8_t>());
      return true;
    case 'j':
      recall(cursor.number<std::uint32_t>());
      return true;
    case 'g':
      recall(static_cast<std::uint64_t>(integer_of(cursor.line())));
      return true;
    default:
      return false;
  }
}

void PickleMachine::step(std::uint8_t code, Cursor& cursor) {
  if (simple(code, cursor) || container(code) || memory(code, cursor)) return;
  switch (code) {
    case 0x80:
      if (const int found = cursor.number<std::uint8_t>(); found > 5)
        lacking(text("a pickle of protocol ", found, ", expected at most 5"));
      return;
    case 0x95:  // the length of a frame
      cursor.take(8);
      return;
    case '0':
      pop();
      return;
    case '1':
      since_mark();
      return;
    case '2':
      push(top());
      return;
    case 'c':
    case 0x93: {
      PickleValue* out = make(Kind::global);
      if (code == 'c') {
        const std::string_view module = cursor.line(), name = cursor.line();
        out->words = text(module, ".", name);
      } else {
        const PickleValue *name = pop(), *module = pop();
        out->words = text(module->words, ".", name->words);
      }
      if (out->words.size() > kLongestWords) lacking("a long name in a pickle");
      allowance_.take(out->words.size());
      return push(out);
    }
    case 'Q':
      return push(storage(*pop()));
    case 'R':
    case 0x81: {  // a call, or a new object of a class
      const PickleValue *arguments = pop(), *function = pop();
      return push(called(*function, *arguments));
    }
    case 'b':  // an object's further state: attributes, which tensors and containers do not need
      pop();
      return;
    default:
      lacking(text("a pickle with opcode ", int{code}, ", which no tensor needs"));
  }
}

const PickleValue* PickleMachine::run(Cursor& cursor) {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  for (;;) {
    const std::size_t at = cursor.at();
    const PickleValue* const root = reading([&] { return text("pickle, byte ", at); },
                                            [&]() -> const PickleValue* {
                                              const auto code = cursor.number<std::uint8_t>();
                                              if (code == '.') return pop();
                                              step(code, cursor);
                                              return nullptr;
                                            });
    if (root) return root;
  }
}

}  // namespace imprint::weights
