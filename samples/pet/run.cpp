#include "samples/pet/run.h"

#include <filesystem>
#include <random>
#include <system_error>

#include "samples/pet/kept/folders.h"

namespace pet {
namespace {

// The name of a temporary file; the destructor removes the file.
class TemporaryFile {
 public:
  TemporaryFile()
      : path_(temporary_directory() /
              ("imprint-pet-" + std::to_string(std::random_device()()) + ".imprint")) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

QueueAccess queue_access(Access access) {
  return access == Access::record ? QueueAccess::record : QueueAccess::submit;
}

Result<std::unique_ptr<Run>> Run::create(VulkanHost* host, const Options& options,
                                         const std::function<void(const std::string&)>& log,
                                         const std::function<void(float)>& progress) {
  std::unique_ptr<Run> made(new Run(host, options));
  const imp_vk_device_info device =
      host ? host->device_info(queue_access(options.access)) : imp_vk_device_info_init();
  PET_ASSIGN(made->game_, Game::create(options, device, log, progress));
  return made;
}

Run::~Run() {
  (void)wait_idle();
  if (game_) game_->close();
}

Result<> Run::wait_idle() {
  if (!host_) return {};
  return host_->wait_idle();
}

Result<> Run::begin(const FrameStart& start) {
  PET_CHECK(game_->begin_frame(start.frame, start.safe_frame, game_->replay_steps()));
  return game_->send_work(start.commands);
}

Result<> Run::end() { return game_->end_frame(); }

Result<> Run::frame() {
  if (host_) {
    PET_ASSIGN(const FrameStart start, host_->begin_frame());
    PET_CHECK(begin(start));
    PET_CHECK(host_->end_frame());
  } else {
    ++frame_;
    PET_CHECK(begin({VK_NULL_HANDLE, frame_, frame_ - 1, 0}));
  }
  return end();
}

Result<std::string> Run::save(const std::string& path) { return wait_saved(game_->save(path)); }

Result<std::string> Run::wait_saved(std::size_t wish) {
  while (!game_->saved(wish)) PET_CHECK(frame());
  return game_->save_problem(wish);
}

Result<Report> Run::finish() {
  std::string problem;
  if (!options_.save.empty()) {
    PET_ASSIGN(problem, save(options_.save));
  }
  const TemporaryFile file;
  // With record, Imprint never submits and cannot wait for the GPU, so the hash is computed from a saved
  // file.
  std::string saved_file = options_.save;
  bool readable = true;
  if (options_.access == Access::record && (saved_file.empty() || !problem.empty())) {
    saved_file = file.path();
    PET_ASSIGN(const std::string unread, wait_saved(game_->save_brain(saved_file)));
    readable = unread.empty();
    if (problem.empty()) problem = unread;
  }
  PET_CHECK(wait_idle());
  game_->close();
  Report report = game_->report();
  report.device = host_ ? host_->properties().deviceName : "CPU";
  if (host_) report.driver = host_->driver_name();
  report.save_problem = problem;
  report.log_problem = game_->log_problem();
  if (readable) {
    PET_ASSIGN(report.weights_hash,
               game_->weights_hash(
                   host_ ? host_->device_info(QueueAccess::submit) : imp_vk_device_info_init(), saved_file));
  }
  return report;
}

}  // namespace pet
