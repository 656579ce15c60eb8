// BrainState's door for tools that learn one brain in several processes.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/base/text.h"
#include "plugin/agent/keep/brain_state.h"

namespace imprint::agent {
namespace {

// Errors: invalid_argument, naming the array.
Result<> check_content(const StateVariable& entry, std::span<const std::byte> content) {
  const auto wrong = [&](std::size_t index, const std::string& found, const std::string& expected) {
    return make_error(ErrorCode::invalid_argument, text("brain_set_state: '", entry.name, "', number ", index,
                                                        ": found ", found, ", expected ", expected, "."));
  };
  const bool is_float = entry.variable.dtype() == DType::float32;
  for (std::size_t i = 0; i * sizeof(float) < content.size(); ++i) {
    float number = 0;
    std::int32_t whole = 0;
    std::memcpy(&number, content.data() + i * sizeof number, sizeof number);
    std::memcpy(&whole, content.data() + i * sizeof whole, sizeof whole);
    if (is_float && !std::isfinite(number)) return wrong(i, "a number that is not finite", "a finite one");
    if (!is_float && (whole < entry.low || whole > entry.high))
      return wrong(i, text(whole), text(entry.low, " .. ", entry.high));
  }
  return {};
}

}  // namespace

std::uint64_t BrainState::shared_bytes() const {
  std::uint64_t bytes = 0;
  for (const StateVariable& entry : shared_) bytes += entry.variable.bytes();
  return bytes;
}

Result<> BrainState::check_between_steps(const char* call) const {
  IMPRINT_CHECK(check_changes(call));
  if (!learning_ || !learning_->training().stepping()) return {};
  return make_error(ErrorCode::wrong_state,
                    text(call, ": brain '", spec_.name,
                         "': found a learn step under way, expected none. Call context_drain first."));
}

Result<> BrainState::read_shared(std::span<std::byte> into) {
  IMPRINT_CHECK(check_between_steps("brain_get_state"));
  IMPRINT_CHECK(services_.context.check_running("brain_get_state"));
  if (!shared_reader_) {
    auto reader = std::make_unique<StateReader>(shared_);
    IMPRINT_CHECK(reader->prepare(services_.context.runtime()));
    shared_reader_ = std::move(reader);
  }
  IMPRINT_CHECK(services_.context.run_now(shared_reader_->commands().front()));
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    const std::span<const std::byte> content = shared_reader_->bytes(i);
    std::ranges::copy(content, into.begin());
    into = into.subspan(content.size());
  }
  return {};
}

Result<> BrainState::write_shared(std::span<const std::byte> from) {
  constexpr const char* call = "brain_set_state";
  IMPRINT_CHECK(check_between_steps(call));
  IMPRINT_CHECK(check_can_load(call));
  std::vector<std::span<const std::byte>> contents;
  for (const StateVariable& entry : shared_) {
    contents.push_back(from.first(entry.variable.bytes()));
    IMPRINT_CHECK(check_content(entry, contents.back()));
    from = from.subspan(entry.variable.bytes());
  }
  give_up_host_copy();
  changed_ = true;
  for (std::size_t i = 0; i < shared_.size(); ++i)
    IMPRINT_CHECK(services_.context.runtime().write(shared_[i].variable, contents[i]));
  if (learning_) learning_->training().resume_all();
  publish();
  return {};
}

}  // namespace imprint::agent
