#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "compute/base/philox.h"
#include "compute/cpu/step.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

void load_block(const Instruction& load, CopyRun copy_run, const Word* from, std::int64_t begin,
                std::int64_t length, Word* to) {
  Walk<1> walk(load.loops);
  walk.seek(begin);
  const std::int64_t run = load.loops.extents[walk.inner()], stride = load.loops.strides[0][walk.inner()];
  std::int64_t position = begin % run;
  while (length > 0) {
    const std::int64_t count = std::min(run - position, length);
    copy_run(from + walk.offsets[0] + position * stride, stride, to, count);
    to += count;
    length -= count;
    position = 0;
    walk.next();
  }
}

void add_numbers(const Instruction& add, const KernelSet& kernels, const float* numbers, std::int64_t begin,
                 std::int64_t length, const float* x, float* result) {
  each_run(add.loops, {begin, begin + length}, [&](const auto& offsets, std::int64_t count, const auto&) {
    kernels.add_number(x, numbers[offsets[0]], add.after, result, count);
    x += count;
    result += count;
  });
}

void store_block(const ChainStore& store, const KernelSet& kernels, const Memory& memory, const Word* from,
                 std::int64_t begin, std::int64_t length) {
  if (!store.loops) return kernels.copy_run(from, 1, memory.data<Word>(store.buffer, begin), length);
  Word* to = memory.data<Word>(store.buffer, store.offset);
  each_rows(*store.loops, {begin, begin + length},
            [&](const auto& offsets, std::int64_t rows, const auto& row_strides, std::int64_t count,
                const auto& strides) {
              if (strides[0] == 1)
                kernels.copy_rows({from, count, 1, to + offsets[0], row_strides[0], rows, count});
              else
                for (std::int64_t i = 0; i < rows * count; ++i)
                  to[offsets[0] + i / count * row_strides[0] + i % count * strides[0]] = from[i];
              from += rows * count;
            });
}

// add_numbers and the store of its result at once.
void store_sums(const Instruction& add, const ChainStore& store, const KernelSet& kernels,
                const Memory& memory, std::int64_t begin, std::int64_t length, const float* x) {
  const auto* const numbers = memory.data<const float>(add.from, add.offset);
  float* const to = memory.data<float>(store.buffer, store.offset);
  each_run(add.loops, {begin, begin + length}, [&](const auto& offsets, std::int64_t count, const auto&) {
    const float number = numbers[offsets[0]];
    each_run(*store.loops, {begin, begin + count}, [&](const auto& row, std::int64_t columns, const auto&) {
      kernels.add_number(x, number, add.after, to + row[0], columns);
      x += columns;
    });
    begin += count;
  });
}

void draw(const Instruction& instruction, const std::int32_t* words, std::int64_t begin, std::int64_t length,
          void* to) {
  const auto bits = [&](int word) { return static_cast<std::uint32_t>(words[word]); };
  if (instruction.kind == Instruction::Kind::uniform) {
    auto* values = static_cast<float*>(to);
    for (std::int64_t i = 0; i < length; ++i)
      values[i] = static_cast<float>(philox_uniform(static_cast<std::uint32_t>(begin + i), instruction.stream,
                                                    bits(2), bits(0), bits(1)));
    return;
  }
  auto* values = static_cast<std::int32_t*>(to);
  const auto count = static_cast<std::uint32_t>(instruction.extent);
  for (std::int64_t i = 0; i < length; ++i) {
    const auto element = static_cast<std::uint32_t>(begin + i);
    values[i] = static_cast<std::int32_t>(philox_permuted(element % count, count, element / count,
                                                          instruction.stream, bits(2), {bits(0), bits(1)}));
  }
}

// Element i is i / stride % extent. In runs, without a division for each element.
void positions(const Instruction& iota, std::int64_t begin, std::int64_t length, std::int32_t* to) {
  std::int64_t value = begin / iota.stride % iota.extent, before = begin % iota.stride;
  while (length > 0) {
    const bool counts = iota.stride == 1;
    const std::int64_t run = std::min(length, counts ? iota.extent - value : iota.stride - before);
    if (counts)
      std::iota(to, to + run, static_cast<std::int32_t>(value));
    else
      std::fill_n(to, run, static_cast<std::int32_t>(value));
    value = counts || value + 1 == iota.extent ? 0 : value + 1;
    before = 0;
    to += run;
    length -= run;
  }
}

void execute(const Chain& chain, const Instruction& instruction, const Memory& memory, std::int64_t begin,
             std::int64_t length) {
  void* result = chain.find(memory, instruction.result, begin);
  switch (instruction.kind) {
    case Instruction::Kind::apply: {
      const auto operand = [&](std::size_t slot) -> const void* {
        return instruction.operands[slot] < 0 ? nullptr
                                              : chain.find(memory, instruction.operands[slot], begin);
      };
      instruction.function(operand(0), operand(1), operand(2), result, length);
      return;
    }
    case Instruction::Kind::load:
      load_block(instruction, chain.kernels->copy_run,
                 memory.data<const Word>(instruction.from, instruction.offset), begin, length,
                 static_cast<Word*>(result));
      return;
    case Instruction::Kind::add_numbers:
      add_numbers(instruction, *chain.kernels, memory.data<const float>(instruction.from, instruction.offset),
                  begin, length,
                  static_cast<const float*>(chain.find(memory, instruction.operands[0], begin)),
                  static_cast<float*>(result));
      return;
    case Instruction::Kind::fill:
      chain.kernels->copy_run(&instruction.value, 0, result, length);
      return;
    case Instruction::Kind::iota: {
      positions(instruction, begin, length, static_cast<std::int32_t*>(result));
      return;
    }
    default:
      draw(instruction, memory.data<const std::int32_t>(instruction.from, instruction.offset), begin, length,
           result);
      return;
  }
}

}  // namespace

Word word_of(double value, DType dtype) {
  if (dtype_is_float(dtype)) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
}

void* Chain::find(const Memory& memory, std::int32_t result, std::int64_t begin) const {
  const Register& found = registers[at(result)];
  if (found.buffer < 0) return reinterpret_cast<Word*>(memory.workspace) + found.offset;
  return memory.data<Word>(found.buffer, found.offset + begin);
}

void Chain::prepare(const Memory& memory) const {
  for (const Instruction& instruction : once) execute(*this, instruction, memory, 0, std::min(count, kBlock));
}

void Chain::compute(const Memory& memory, std::int64_t begin, std::int64_t length) const {
  for (const Instruction& instruction : block) execute(*this, instruction, memory, begin, length);
}

std::int64_t Chain::work() const { return count * static_cast<std::int64_t>(block.size() + stores.size()); }

// The last instruction, if it is a sum that only a store of long rows reads.
const Instruction* Chain::stored_sum() const {
  constexpr std::int64_t kLongRow = 28;
  if (stores.size() != 1 || !stores[0].loops || block.empty()) return nullptr;
  const Instruction& last = block.back();
  const Loops<1>& rows = *stores[0].loops;
  const std::size_t inner = at(rows.depth) - 1;
  const bool is_long = rows.strides[0][inner] == 1 && rows.extents[inner] >= kLongRow;
  return is_long && last.kind == Instruction::Kind::add_numbers && last.result == stores[0].result ? &last
                                                                                                   : nullptr;
}

void Chain::run(const Memory& memory, Parts elements) const {
  const Instruction* const sum = stored_sum();
  for (std::int64_t begin = elements.begin; begin < elements.end; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, elements.end - begin);
    if (sum) {
      for (const Instruction& instruction : block)
        if (&instruction != sum) execute(*this, instruction, memory, begin, length);
      store_sums(*sum, stores[0], *kernels, memory, begin, length,
                 static_cast<const float*>(find(memory, sum->operands[0], begin)));
      continue;
    }
    compute(memory, begin, length);
    for (const ChainStore& store : stores)
      store_block(store, *kernels, memory, static_cast<const Word*>(find(memory, store.result, begin)), begin,
                  length);
  }
}

void Chain::start_anywhere() {
  const auto first = std::stable_partition(once.begin(), once.end(), [](const Instruction& instruction) {
    return instruction.kind != Instruction::Kind::load || instruction.loops.depth == 1;
  });
  block.insert(block.begin(), first, once.end());
  once.erase(first, once.end());
}

std::int32_t Chain::register_of(std::int32_t buffer) const {
  const auto found = std::ranges::find_if(
      registers, [&](const Register& entry) { return entry.buffer == buffer && entry.offset == 0; });
  return found == registers.end() ? -1 : static_cast<std::int32_t>(found - registers.begin());
}

bool Chain::loads(std::int32_t buffer) const {
  const auto is_of = [&](const auto& entry) { return entry.from == buffer; };
  return std::ranges::any_of(once, is_of) || std::ranges::any_of(block, is_of) ||
         std::ranges::count(registers, buffer, &Register::buffer) > 1;
}

bool Chain::writes(std::int32_t buffer) const {
  return std::ranges::find(stores, buffer, &ChainStore::buffer) != stores.end() ||
         std::ranges::any_of(block, [&](const Instruction& instruction) {
           return registers[at(instruction.result)].buffer == buffer;
         });
}

// Other parts of the step read its operands, and have not computed what is at other elements.
bool Chain::can_follow(std::int32_t of, std::int64_t elements,
                       std::initializer_list<std::int32_t> operands) const {
  return count == elements && register_of(of) >= 0 && !loads(of) &&
         std::ranges::none_of(operands, [&](std::int32_t buffer) { return buffer >= 0 && writes(buffer); });
}

bool Chain::reads(std::int32_t result) const {
  return std::ranges::find(stores, result, &ChainStore::result) != stores.end() ||
         std::ranges::any_of(block, [&](const Instruction& instruction) {
           return std::ranges::find(instruction.operands, result) != instruction.operands.end();
         });
}

std::int32_t Chain::overwrite(std::int32_t result) {
  if (std::ranges::find(stores, result, &ChainStore::result) != stores.end()) return -1;
  const auto reads = [&](const Instruction& entry) {
    return std::ranges::find(entry.operands, result) != entry.operands.end();
  };
  const auto last = std::ranges::find_if(block.rbegin(), block.rend(), reads);
  if (last == block.rend()) return -1;
  const auto target = std::find_if(std::prev(last.base()), block.end(), [&](const Instruction& entry) {
    return registers[at(entry.result)].buffer >= 0;
  });
  if (target == block.end()) return -1;
  registers[at(result)] = registers[at(target->result)];
  return registers[at(result)].buffer;
}

std::int64_t MapStep::part_count() const { return (chain_.count + kBlock - 1) / kBlock; }
std::int64_t MapStep::work() const { return chain_.work(); }

void MapStep::run(const Memory& memory, Parts parts) const {
  chain_.prepare(memory);
  chain_.run(memory, {parts.begin * kBlock, std::min(parts.end * kBlock, used_.of(memory, chain_.count))});
}

// Terms of one line, in blocks as of a line without gaps.
struct Gathered {
  Word words[kBlock];
  std::int64_t count = 0;

  void fold(FoldRun fold_run, Word* target) {
    if (count > 0) fold_run(words, count, target);
    count = 0;
  }
};

ReduceStep::ReduceStep(const GraphNode& node, const Shape& source, std::span<const int> order, Chain chain,
                       std::int32_t result, const KernelSet& kernels, std::int32_t into)
    : chain_(std::move(chain)), result_(result), into_(into), outputs_(node.element_count()) {
  Strides strides = row_major_strides(node.shape);
  for (std::int64_t axis : node.ints) strides[at(axis)] = 0;
  Shape walked = order.empty() ? source : Shape{};
  const Strides own = strides;
  for (const int axis : order) {
    strides[at(walked.rank())] = own[at(axis)];
    walked.append(source[axis]);
  }
  loops_ = loops_over<1>(walked, {strides});
  folds_inner_ = loops_.strides[0][at(loops_.depth) - 1] == 0;
  const Fold& fold = *fold_of(node.op);
  start_ = word_of(fold.start(node.dtype), node.dtype);
  combine_ = kernels.elementwise(fold.combination, node.dtype, node.dtype);
  fold_ = kernels.fold_run(node.op, node.dtype);
}

std::int64_t ReduceStep::part_count() const {
  const std::int64_t parts = loops_.extents[0];
  const bool differ = loops_.depth > 1 && loops_.strides[0][0] * parts == outputs_;
  return differ && outputs_ > 0 && chain_.count > 0 ? parts : 1;
}
std::int64_t ReduceStep::work() const { return chain_.work() + chain_.count; }

void ReduceStep::run(const Memory& memory, Parts parts) const {
  const std::int64_t all = part_count();
  Word* into = memory.data<Word>(into_);
  std::fill_n(into + outputs_ / all * parts.begin, outputs_ / all * (parts.end - parts.begin), start_);
  if (chain_.count == 0) return;
  chain_.prepare(memory);
  Walk<1> walk(loops_);
  const std::int64_t inner = loops_.extents[walk.inner()];
  std::int64_t position = 0;  // in the innermost loop
  Gathered gathered;
  const std::int64_t first = chain_.count / all * parts.begin,
                     end = std::min(chain_.count / all * parts.end, used_.of(memory, chain_.count));
  walk.seek(first);
  for (std::int64_t begin = first, length = 0; begin < end; begin += length) {
    // All rows are cut alike: equal rows give equal bits, and a sample's result does not depend on its
    // position in the batch.
    const std::int64_t whole_rows =
        inner <= kBlock ? kBlock / inner * inner : std::min(kBlock, inner - position);
    length = std::min(folds_inner_ ? whole_rows : kBlock, end - begin);
    chain_.compute(memory, begin, length);
    const Word* value = static_cast<const Word*>(chain_.find(memory, result_, begin));
    for (std::int64_t done = 0; done < length;) {
      const std::int64_t count = std::min(inner - position, length - done);
      Word* target = into + walk.offsets[0] + (folds_inner_ ? 0 : position);
      if (!folds_inner_)
        combine_(target, value + done, nullptr, target, count);
      else if (used_line_.digits.empty())
        fold_(value + done, count, target);
      else
        fold_used(memory, value + done, {position, position + count}, gathered, target);
      done += count;
      position += count;
      if (position < inner) continue;
      gathered.fold(fold_, target);
      position = 0;
      walk.next();
    }
  }
  if (gathered.count > 0) gathered.fold(fold_, into + walk.offsets[0]);
}

void ReduceStep::fold_used(const Memory& memory, const Word* values, Parts of_line, Gathered& gathered,
                           Word* target) const {
  for (std::int64_t at = of_line.begin; at < of_line.end;) {
    const UsedLine::Stretch stretch = used_line_.stretch(memory, at);
    const std::int64_t end = std::min(stretch.end, of_line.end);
    if (!stretch.is_used) {
      at = end;
      continue;
    }
    while (at < end) {
      const std::int64_t count = std::min(end - at, kBlock - gathered.count);
      std::copy_n(values + (at - of_line.begin), count, gathered.words + gathered.count);
      gathered.count += count;
      at += count;
      if (gathered.count == kBlock) gathered.fold(fold_, target);
    }
  }
}

}  // namespace imprint::cpu
