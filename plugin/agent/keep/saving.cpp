#include "plugin/agent/keep/saving.h"

#include <exception>

#include "compute/model/file.h"

namespace imprint::agent {
namespace {

Status write_brain(const BrainSpec& spec, std::span<const StateVariable> state, const HostState& host,
                   const StateReader& reader, const std::string& path) {
  std::vector<std::span<const std::byte>> bytes;
  for (std::size_t i = 0; i < state.size(); ++i) bytes.push_back(reader.bytes(i));
  IMPRINT_ASSIGN(const std::vector<std::byte> file, encode_brain(spec, state, host, bytes));
  return write_file_atomic(path, file);
}

}  // namespace

Saving::Saving(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state)
    : files_(files), spec_(spec), state_(state.begin(), state.end()), reader_(state) {}

Status Saving::begin(const std::string& path, HostState host) {
  if (!idle())
    return make_error(ErrorCode::wrong_state, "brain_save: an earlier save, to '" + job_->path +
                                                  "', is still on its way; poll brain_save_status first");
  job_ = std::make_shared<Job>();
  job_->path = path;
  job_->host = std::move(host);
  return {};
}

Status Saving::write(const std::string& path, std::shared_ptr<const std::vector<std::byte>> file) {
  IMPRINT_CHECK(begin(path, {}));
  job_->phase = Phase::writing;
  files_.add([job = job_, file = std::move(file)] {
    try {
      job->outcome = write_file_atomic(job->path, *file);
    } catch (const std::exception& exception) {
      job->outcome =
          make_error(ErrorCode::out_of_host_memory, std::string("brain_save: ") + exception.what());
    }
    job->phase = Phase::done;
  });
  return {};
}

bool Saving::idle() const { return !job_ || job_->phase == Phase::done; }

void Saving::delivered() {
  job_->phase = Phase::writing;
  files_.add([this, job = job_] {
    // An exception here (no memory) has nobody above it; it is an outcome like others.
    try {
      job->outcome = write_brain(spec_, state_, job->host, reader_, job->path);
    } catch (const std::exception& exception) {
      job->outcome =
          make_error(ErrorCode::out_of_host_memory, std::string("brain_save: ") + exception.what());
    }
    job->phase = Phase::done;
  });
}

void Saving::fail(Error error) {
  // Once the writer has the bytes the outcome is its own to say, device or no device.
  if (!job_ || job_->phase != Phase::reading) return;
  job_->outcome = std::move(error);
  job_->phase = Phase::done;
}

Status Saving::status() const {
  if (!job_) return make_error(ErrorCode::not_found, "brain_save_status: this brain was never saved");
  if (job_->phase != Phase::done) return make_error(ErrorCode::not_ready, "");
  return job_->outcome;
}

}  // namespace imprint::agent
