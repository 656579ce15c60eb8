#include "plugin/agent/keep/host_copy.h"

#include <exception>

namespace imprint::agent {

HostCopy::HostCopy(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state)
    : files_(files), spec_(spec), state_(state.begin(), state.end()), reader_(state) {}

void HostCopy::begin(std::uint64_t frame, HostState host) {
  busy_->store(true, std::memory_order_release);
  frame_ = frame;
  host_ = std::make_shared<HostState>(std::move(host));
  begun_ = true;
}

void HostCopy::forget() {
  begun_ = false;
  host_.reset();
  busy_->store(false, std::memory_order_release);
}

void HostCopy::delivered() {
  files_.add([this, frame = frame_, host = std::move(host_), busy = busy_, kept = kept_] {
    // Without memory for a new copy the old one stays.
    try {
      std::vector<std::span<const std::byte>> bytes;
      for (std::size_t i = 0; i < state_.size(); ++i) bytes.push_back(reader_.bytes(i));
      if (auto file = encode_brain(spec_, state_, *host, bytes)) {
        auto copy = std::make_shared<const Content>(Content{frame, std::move(*file)});
        const std::lock_guard lock(kept->mutex);
        kept->newest = std::move(copy);
      }
    } catch (const std::exception&) {
    }
    busy->store(false, std::memory_order_release);
  });
}

std::shared_ptr<const HostCopy::Content> HostCopy::newest() const {
  const std::lock_guard lock(kept_->mutex);
  return kept_->newest;
}

}  // namespace imprint::agent
