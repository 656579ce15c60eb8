#include "plugin/agent/keep/saving.h"

#include <exception>
#include <utility>

#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::agent {
namespace {

Result<> write_brain(const BrainSpec& spec, std::span<const StateVariable> state, const HostState& host,
                     const StateReader& reader, const std::string& path) {
  std::vector<std::span<const std::byte>> bytes;
  for (std::size_t i = 0; i < state.size(); ++i) bytes.push_back(reader.bytes(i));
  IMPRINT_ASSIGN(const std::vector<std::byte> file, encode_brain(spec, state, host, bytes));
  return write_file_atomic(path, file);
}

}  // namespace

Saving::Saving(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state)
    : files_(files), spec_(spec), state_(state.begin(), state.end()), reader_(state) {}

Result<> Saving::begin(const std::string& path, HostState host) {
  if (!idle())
    return make_error(ErrorCode::wrong_state,
                      text("brain_save: found a save to '", save_->path,
                           "' under way, expected none. Poll brain_save_status first."));
  save_ = std::make_shared<Save>();
  save_->path = path;
  save_->host = std::move(host);
  return {};
}

Result<> Saving::write(const std::string& path, std::shared_ptr<const std::vector<std::byte>> file) {
  IMPRINT_CHECK(begin(path, {}));
  save_->phase = Phase::writing;
  files_.add([save = save_, file = std::move(file)] {
    try {
      save->outcome = write_file_atomic(save->path, *file);
    } catch (const std::exception& exception) {
      save->outcome = make_error(ErrorCode::out_of_host_memory, text("brain_save: ", exception.what()));
    }
    save->phase = Phase::done;
  });
  return {};
}

bool Saving::idle() const { return !save_ || save_->phase == Phase::done; }

void Saving::delivered() {
  save_->phase = Phase::writing;
  files_.add([this, save = save_] {
    // No caller could catch an exception (no memory) here: it becomes the outcome.
    try {
      save->outcome = write_brain(spec_, state_, save->host, reader_, save->path);
    } catch (const std::exception& exception) {
      save->outcome = make_error(ErrorCode::out_of_host_memory, text("brain_save: ", exception.what()));
    }
    save->phase = Phase::done;
  });
}

void Saving::fail(Error error) {
  // Once the writer has the bytes, the outcome does not depend on the device.
  if (!save_ || save_->phase != Phase::reading) return;
  save_->outcome = std::move(error);
  save_->phase = Phase::done;
}

Result<> Saving::tell() {
  if (!save_) return {};
  const Phase phase = save_->phase;
  if (std::exchange(save_->told, phase) == phase) return {};
  return status();
}

Result<> Saving::status() const {
  if (!save_)
    return make_error(ErrorCode::not_found,
                      "brain_save_status: this brain was never saved. Call brain_save first.");
  if (save_->phase != Phase::done) return make_error(ErrorCode::not_ready, "");
  save_->told = Phase::done;
  return save_->outcome;
}

}  // namespace imprint::agent
