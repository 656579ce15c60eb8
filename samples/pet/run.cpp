#include "samples/pet/run.h"

#include <filesystem>
#include <random>
#include <utility>

namespace pet {
namespace {

// A file that goes when its owner goes.
class TemporaryFile {
 public:
  TemporaryFile()
      : path_(std::filesystem::temp_directory_path() /
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

Run::Run(VulkanHost* host, const Options& options, std::function<void(const std::string&)> log,
         const std::function<void(float)>& progress)
    : host_(host),
      options_(options),
      game_(std::make_unique<Game>(
          options, host ? host->device_info(queue_access(options.access)) : imp_vk_device_info_init(),
          std::move(log), progress)) {}

Run::~Run() {
  wait_idle();
  game_->close();
}

void Run::wait_idle() {
  if (host_) host_->wait_idle();
}

void Run::begin(const FrameStart& start) {
  game_->begin_frame(start.frame, start.safe_frame, game_->replay_steps());
  game_->send_work(start.commands);
}

void Run::end() { game_->end_frame(); }

void Run::frame() {
  if (!host_) {
    ++frame_;
    begin({VK_NULL_HANDLE, frame_, frame_ - 1, 0});
  } else {
    begin(host_->begin_frame());
    host_->end_frame();
  }
  end();
}

std::string Run::save(const std::string& path) { return wait_saved(game_->save(path)); }

std::string Run::wait_saved(std::size_t wish) {
  while (!game_->saved(wish)) frame();
  return game_->save_problem(wish);
}

Report Run::finish() {
  std::string problem;
  if (!options_.save.empty()) problem = save(options_.save);
  const TemporaryFile file;
  // Where the game submits, Imprint never does so itself and cannot wait for the GPU: the hash is taken of
  // what was saved.
  std::string saved_file = options_.save;
  bool readable = true;
  if (options_.access == Access::record && (saved_file.empty() || !problem.empty())) {
    saved_file = file.path();
    const std::string unread = wait_saved(game_->save_brain(saved_file));
    readable = unread.empty();
    if (problem.empty()) problem = unread;
  }
  wait_idle();
  game_->close();
  Report report = game_->report();
  report.device = host_ ? host_->properties().deviceName : "CPU";
  if (host_) report.driver = host_->driver_name();
  report.save_problem = problem;
  report.log_problem = game_->log_problem();
  if (readable)
    report.weights_hash = game_->weights_hash(
        host_ ? host_->device_info(QueueAccess::submit) : imp_vk_device_info_init(), saved_file);
  return report;
}

}  // namespace pet
