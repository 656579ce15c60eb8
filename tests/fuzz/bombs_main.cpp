// Every bomb against every reader of its kind, each in a process of its own: CPU time and peak memory beyond
// a harmless file's, which must stay below what the page on testing says.
//
// usage: fuzz_bombs IMPRINT [TEXT]      IMPRINT: the command line; TEXT: only bombs with it in their name
//        fuzz_bombs IMPRINT --some      each bomb by one reader, in turns
//        fuzz_bombs --make FOLDER       writes the bombs
//        fuzz_bombs --one ENTRY FILE    one reader, in a process of its own

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/weights/weights.h"
#include "compute/training/dataset_bytes.h"
#include "compute/training/picture.h"
#include "compute/tuning/tuning_table.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/pipeline_blob.h"
#include "imprint/imprint.h"
#include "imprint/imprint_models.h"
#include "imprint/imprint_tools.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/keep/demonstrations.h"
#include "tests/fuzz/bombs.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/seed_brain.h"
#include "tools/imprint/brain_file.h"
#include "tools/imprint/model_file.h"
#include "tools/imprint/profiles.h"
#include "tools/studio/curriculum.h"
#include "tools/studio/episode_log.h"
#include "tools/studio/league.h"

namespace imprint::fuzz {
namespace {

namespace fs = std::filesystem;

// The bars for a reading: memory beyond a harmless file's, and all of a process; CPU time at the best of
// several tries, on a machine that does the reference work in kReferenceMs. A slower machine, or a busy one,
// has more time.
constexpr double kBarMib = 64, kMostMib = 128;
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kBarMs = 200;
#else
constexpr double kBarMs = 4000;  // checks and sanitizers take several times as long
#endif
constexpr double kReferenceMs = 60;
constexpr const char* kReference = "reference";
constexpr int kTries = 8;
constexpr rlim_t kMostSeconds = 30;
constexpr std::uint64_t kCap = 64u << 20, kMostOperations = 1'000'000'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOwn = false;  // shadow and quarantine
#else
constexpr bool kMemoryIsOwn = true;
#endif

// ---- one reader, in a process of its own. Returns 0 for a file that was taken, 1 for one that was refused.
// ----

constexpr int kTaken = 0, kRefused = 1, kSkipped = 2, kBroken = 3;

const imp_api& api() {
  static const imp_api* const table = [] {
    const imp_api* found = nullptr;
    require(imp_get_api(IMP_ABI_VERSION, &found) == IMP_OK, "the library gives its table");
    return found;
  }();
  return *table;
}

int told(imp_result result) {
  if (result >= IMP_OK) return std::puts("taken"), kTaken;
  std::printf("%s: %s\n", api().result_name(result), api().last_error());
  return result == IMP_ERROR_INTERNAL ? kBroken : kRefused;
}

imp_context open(const char* device) {
  imp_standalone_info info = imp_standalone_info_init();
  info.device = device;
  imp_limits limits = imp_limits_init();
  limits.memory_cap_bytes = kCap;
  imp_context context = {};
  const imp_result opened = api().tools->context_create_standalone(&info, nullptr, &limits, &context);
  if (opened < IMP_OK) std::exit(device ? kBroken : kSkipped);  // no Vulkan device on this computer
  return context;
}

// A frame in which an agent asks for a decision.
imp_result act_once(imp_context context, imp_brain brain) {
  imp_brain_info info = imp_brain_info_init();
  imp_result result = api().brain_get_info(brain, &info);
  imp_agent agent = {};
  if (result >= IMP_OK) result = api().agent_create(brain, 0, &agent);
  imp_frame_info frame = imp_frame_info_init();
  frame.frame = 1;
  if (result >= IMP_OK) result = api().frame_begin(context, &frame);
  if (result < IMP_OK) return result;
  const std::vector<float> seen(info.observation_count, 0.5f);
  result = api().agent_observe(agent, seen.data(), info.observation_count);
  if (result >= IMP_OK) result = api().frame_submit(context, UINT32_MAX);
  const imp_result ended = api().frame_end(context);
  return result < IMP_OK ? result : ended;
}

// limited: as a careful host does; else by the defaults.
int create_policy(Bytes bytes, bool warm, bool limited) {
  const imp_context context = open("cpu");
  imp_policy_desc desc = imp_policy_desc_init();
  desc.data = bytes.data();
  desc.size = bytes.size();
  if (limited) {
    desc.constant_limit_bytes = kCap;
    desc.operation_limit = kMostOperations / desc.agent_capacity;
  }
  imp_brain brain = {};
  imp_result result = api().brain_create_from_onnx(context, &desc, &brain);
  if (warm && result >= IMP_OK) result = api().context_warmup(context, nullptr, nullptr);
  if (warm && result >= IMP_OK) result = act_once(context, brain);
  const int code = told(result);
  return api().context_destroy(context) < IMP_OK ? kBroken : code;
}

int create_model(Bytes bytes) {
  const imp_context context = open("cpu");
  imp_model_desc desc = imp_model_desc_init();
  desc.data = bytes.data();
  desc.size = bytes.size();
  desc.constant_limit_bytes = kCap;
  desc.operation_limit = kMostOperations;
  imp_model model = {};
  imp_result result = api().models->model_create(context, &desc, &model);
  if (result >= IMP_OK) result = api().context_warmup(context, nullptr, nullptr);
  const int code = told(result);
  return api().context_destroy(context) < IMP_OK ? kBroken : code;
}

// The brain of the corpus (seed_brain.h), through the table.
int load_brain(const char* file, bool weights_alone) {
  const imp_context context = open("cpu");
  const agent::BrainSpec spec = seed_brain();
  imp_feedback_options options = imp_feedback_options_init();
  options.batch_size = spec.batch_size;
  options.replay_capacity = spec.replay_capacity;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.header.next = &options;
  desc.name = spec.name.c_str();
  desc.observation_count = spec.observation.count;
  desc.branch_count = 1;
  desc.branch_sizes = spec.action.branch_sizes.data();
  desc.hidden_count = 1;
  desc.hidden_sizes = spec.hidden_sizes.data();
  desc.learner = IMP_LEARNER_FEEDBACK;
  imp_brain brain = {};
  if (api().brain_create(context, &desc, &brain) < IMP_OK) return kBroken;
  const int code =
      told(weights_alone ? api().brain_load_weights(brain, file) : api().brain_load(brain, file));
  return api().context_destroy(context) < IMP_OK ? kBroken : code;
}

int set_on_device(Bytes bytes, bool table) {
  const imp_context context = open(nullptr);
  const int code =
      told(table ? api().tools->tuning_set(context, reinterpret_cast<const char*>(bytes.data()), bytes.size())
                 : api().tools->pipeline_cache_set(context, bytes.data(), bytes.size()));
  return api().context_destroy(context) < IMP_OK ? kBroken : code;
}

const char* kind_name(BombKind kind) {
  constexpr const char* kNames[] = {
      "model",       "named",          "brain",      "table",      "archive",    "cache",
      "safetensors", "demonstrations", "profile",    "brain_file", "model_file", "picture",
      "csv",         "episode",        "curriculum", "league",     "bounds",     "weights"};
  return kNames[static_cast<int>(kind)];
}

// One reading of a file. (The harnesses read what they wrote again.)
Result<> read_once(BombKind kind, Bytes bytes, const char* file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto done = [](const auto& read) -> Result<> {
    if (!read) return read.error();
    return {};
  };
  switch (kind) {
    case BombKind::archive:
      return done(vk::KernelArchive::parse(bytes));
    case BombKind::cache:
      return done(vk::unwrap_pipeline_cache(bytes, {}));
    case BombKind::table:
      return done(read_tuning_tables(text));
    case BombKind::safetensors:
      return done(imprint::safetensors::parse(bytes));
    case BombKind::demonstrations:
      return done(agent::read_demonstrations(bytes));
    case BombKind::profile:
      return done(tools::parse_profile(file, bytes));
    case BombKind::brain_file:
      return done(tools::parse_brains(file, bytes));
    case BombKind::model_file:
      return done(tools::load_models(file));
    case BombKind::picture:
      return done(training::decode_picture(bytes, file, {.height = 64, .width = 64}));
    case BombKind::csv:
      return done(training::parse_csv({file, bytes}, "y"));
    case BombKind::episode:
      return done(studio::EpisodeLog::parse(bytes, file));
    case BombKind::curriculum:
      return done(studio::Curriculum::parse(std::string(text)));
    case BombKind::league:
      return done(studio::League::parse(std::string(text), "league"));
    case BombKind::bounds:
      extents(bytes);
      return {};
    case BombKind::weights:
      return done(imprint::weights::parse(bytes));
    case BombKind::model:
    case BombKind::named:
    case BombKind::brain:
      break;  // through the command line and the C interface
  }
  return make_error(ErrorCode::internal, "this kind has other readers");
}

// The reference work: as readers do, it fills small and scattered pieces of memory.
int reference() {
  constexpr std::uint64_t kEntries = 100'000;
  std::map<std::uint64_t, std::string> table;
  std::uint64_t key = 1;
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    key = key * 6364136223846793005u + 1442695040888963407u;
    table[key].assign(24, static_cast<char>(i));
  }
  return table.size() == kEntries ? kTaken : kBroken;
}

int run_one(const std::string& entry, const char* file) {
  if (entry == kReference) return reference();
  const auto read = read_file(file);
  if (!read) return kBroken;
  const Bytes bytes(*read);
  if (entry == "create" || entry == "warmup")
    return create_policy(bytes, entry == "warmup", entry == "warmup");
  if (entry == "model_create") return create_model(bytes);
  if (entry == "load" || entry == "load_weights") return load_brain(file, entry == "load_weights");
  if (entry == "tuning_set" || entry == "pipeline_cache_set")
    return set_on_device(bytes, entry == "tuning_set");
  for (int i = 0; i <= static_cast<int>(BombKind::weights); ++i) {
    const auto kind = static_cast<BombKind>(i);
    if (entry != std::string("read ") + kind_name(kind)) continue;
    const Result<> taken = read_once(kind, bytes, file);
    if (taken) return std::puts("read"), kTaken;
    std::puts(taken.error().message.c_str());
    return taken.error().code == ErrorCode::internal ? kBroken : kRefused;
  }
  return kBroken;
}

// ---- all readers ----

struct Measured {
  int status = kBroken;  // or minus the signal that ended it
  double ms = 0, mib = 0;
  std::string text;  // the first line of what it printed
};

Measured run(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit seconds{kMostSeconds, kMostSeconds};
    setrlimit(RLIMIT_CPU, &seconds);
    const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 1);
    dup2(file, 2);
    execv(arguments[0], arguments.data());
    _exit(kBroken);
  }
  Measured found;
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child) return found;
  found.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  found.ms = ms(used.ru_utime) + ms(used.ru_stime);
  found.mib = static_cast<double>(used.ru_maxrss) / 1024;
  if (const auto text = read_file(output)) {
    found.text.assign(reinterpret_cast<const char*>(text->data()), std::min<std::size_t>(text->size(), 400));
    found.text = found.text.substr(0, found.text.find('\n'));
  }
  return found;
}

std::vector<std::string> entries_of(BombKind kind) {
  const std::string read = std::string("read ") + kind_name(kind);
  switch (kind) {
    case BombKind::model:
      return {"inspect",         "inspect --json", "run",    "run limited", "convert",
              "convert weights", "quantise",       "create", "warmup",      "model_create"};
    case BombKind::named:
      return {"run --extent"};
    case BombKind::brain:
      return {"load", "load_weights", "export", "demos extract"};
    case BombKind::table:
      return {read, "tuning_set"};
    case BombKind::cache:
      return {read, "pipeline_cache_set"};
    case BombKind::demonstrations:
      return {read, "demos show"};
    default:
      return {read};
  }
}

// The defaults of `run` and others count tensors of other files as part of the model.
bool is_limited(const std::string& entry) {
  return entry == "run limited" || entry == "warmup" || entry == "model_create";
}

std::vector<Bomb> all_bombs() {
  std::vector<Bomb> bombs = model_bombs(), operators = operator_bombs(), bodies = body_bombs(),
                    named = named_bombs(), data = data_bombs(), others = file_bombs();
  std::ranges::move(operators, std::back_inserter(bombs));
  std::ranges::move(bodies, std::back_inserter(bombs));
  std::ranges::move(named, std::back_inserter(bombs));
  std::ranges::move(data, std::back_inserter(bombs));
  std::ranges::move(others, std::back_inserter(bombs));
#ifdef IMPRINT_FUZZ_PICTURES
  std::ranges::move(picture_bombs(), std::back_inserter(bombs));
#endif
  return bombs;
}

std::string file_of(const std::string& folder, std::size_t index, BombKind kind) {
  return folder + "/" + std::to_string(index) + (kind <= BombKind::named ? ".onnx" : ".bin");
}

// In a process of its own, so that the one that measures stays small.
int make(const std::string& folder) {
  int status = kTaken;
  const std::vector<Bomb> bombs = all_bombs();
  for (std::size_t i = 0; i < bombs.size(); ++i) {
    const std::vector<std::byte> file = bombs[i].make();
    if (file.size() > 1 << 20) {
      std::fprintf(stderr, "%s: found %zu bytes, expected at most 2^20\n", bombs[i].name.c_str(),
                   file.size());
      status = kBroken;
    }
    if (!write_file_atomic(file_of(folder, i, bombs[i].kind), file)) return kBroken;
  }
  if (!write_file_atomic(folder + "/" + kManyInputs, many_inputs())) return kBroken;
  const std::string large = folder + "/" + kLargeFile;
  if (!write_file_atomic(large, {})) return kBroken;
  fs::resize_file(large, std::uint64_t{1} << 30);
  safetensors::File input;
  input.arrays.emplace("x", safetensors::Array::of(std::vector<float>{0.5f}, {1, 1}));
  return safetensors::save(input, folder + "/in.safetensors") ? status : kBroken;
}

class Report {
 public:
  Report(std::string self, std::string command_line, std::string folder)
      : self_(std::move(self)), command_line_(std::move(command_line)), folder_(std::move(folder)) {
    pace_ = std::min(pace(), pace());
  }

  void measure(const std::string& entry, const std::string& file, const std::string& title) {
    Measured found = run(command(entry, file), folder_ + "/output");
    found.ms /= pace_;
    bool slow = found.ms > kBarMs;
    for (int i = 1; i < kTries && slow && found.status >= 0; ++i) {
      const double now = pace();
      found.ms = std::min(found.ms, run(command(entry, file), folder_ + "/output").ms / now);
      slow = found.ms > kBarMs;
    }
    base_.emplace(entry, found.mib);  // of the harmless file, which comes first
    if (found.status == kSkipped) return;
    const double mib = std::max(0.0, found.mib - base_[entry]);
    const bool broken = found.status != kTaken && found.status != kRefused;
    const bool large = kMemoryIsOwn && (mib > kBarMib || found.mib > kMostMib);
    const bool fails = broken || slow || large;
    failures_ += fails;
    ++count_;
    worst_ms_ = std::max(worst_ms_, found.ms);
    worst_mib_ = std::max(worst_mib_, mib);
    std::printf("%s %-18s %8.0f %8.1f  %-40s %s\n", fails ? "FAIL" : "    ", entry.c_str(), found.ms, mib,
                title.c_str(), found.status < 0 ? "killed" : found.text.substr(0, 110).c_str());
  }

  int finish() const {
    std::printf("%d readings; most: %.0f ms of CPU time, %.1f MiB; %d above %.0f ms or %.0f MiB, or broken\n",
                count_, worst_ms_, worst_mib_, failures_, kBarMs, kBarMib);
    return failures_ != 0;
  }

 private:
  // How many times longer this machine takes now for the reference work, at least 1.
  double pace() const {
    const double ms = run({self_, "--one", kReference, "/dev/null"}, folder_ + "/output").ms;
    return std::max(1.0, ms / kReferenceMs);
  }

  std::vector<std::string> command(const std::string& entry, const std::string& file) const {
    if (entry == "inspect") return {command_line_, "inspect", file};
    if (entry == "inspect --json") return {command_line_, "inspect", "--json", file};
    if (entry == "convert") return {command_line_, "convert", file, folder_ + "/out.onnx"};
    if (entry == "convert weights") return {command_line_, "convert", file, folder_ + "/out"};
    if (entry == "quantise")
      return {command_line_, "quantise", "--least", "1", "--bits", "4", file, folder_ + "/out.onnx"};
    if (entry == "export") return {command_line_, "export", file, folder_ + "/out.onnx"};
    if (entry == "demos extract") return {command_line_, "demos", "extract", file, folder_ + "/out"};
    if (entry == "demos show") return {command_line_, "demos", "show", file};
    std::vector<std::string> run{command_line_, "run", file, "--device", "cpu"};
    const auto with = [&](std::initializer_list<std::string> more) {
      run.insert(run.end(), more);
      return run;
    };
    if (entry == "run") return with({"--input", folder_ + "/in.safetensors", "--output", folder_ + "/out"});
    if (entry == "run limited")
      return with({"--input", folder_ + "/in.safetensors", "--output", folder_ + "/out", "--most-mib", "64",
                   "--most-gop", "1"});
    if (entry == "run --extent")
      return with({"--batch", "2", "--extent", "N=60000", "--most-mib", "64", "--most-gop", "1"});
    return {self_, "--one", entry, file};
  }

  std::string self_, command_line_, folder_;
  std::map<std::string, double> base_;
  double pace_ = 1;
  int count_ = 0, failures_ = 0;
  double worst_ms_ = 0, worst_mib_ = 0;
};

int run_all(const char* self, const char* command_line, const std::string& chosen) {
  const bool some = chosen == "--some";
  const std::string only = some ? "" : chosen;
  std::string folder = (fs::temp_directory_path() / "imprint-bombs-XXXXXX").string();
  if (!mkdtemp(folder.data())) return kBroken;
  const Measured made = run({self, "--make", folder}, folder + "/output");
  int failed = made.status;
  if (failed != kTaken) {
    std::fprintf(stderr, "%s\n", made.text.c_str());
  } else {
    Report report(self, command_line, folder);
    std::printf("     %-18s %8s %8s\n", "reader", "CPU ms", "MiB");
    const std::vector<Bomb> bombs = all_bombs();
    for (std::size_t i = 0; i < bombs.size(); ++i) {
      const Bomb& bomb = bombs[i];
      if (bomb.name != kHarmless && bomb.name.find(only) == std::string::npos) continue;
      const std::vector<std::string> entries = entries_of(bomb.kind);
      for (std::size_t j = 0; j < entries.size(); ++j) {
        if (some && bomb.name != kHarmless && j != i % entries.size()) continue;
        if (bomb.name.ends_with(kInAnotherFile) && !is_limited(entries[j])) continue;
        report.measure(entries[j], file_of(folder, i, bomb.kind),
                       text(bomb.name, ", ", fs::file_size(file_of(folder, i, bomb.kind)), " bytes"));
      }
    }
    failed = report.finish();
  }
  fs::remove_all(folder);
  return failed;
}

}  // namespace
}  // namespace imprint::fuzz

int main(int argc, char** argv) {
  using namespace imprint::fuzz;
  if (argc == 3 && std::strcmp(argv[1], "--make") == 0) return make(argv[2]);
  if (argc == 4 && std::strcmp(argv[1], "--one") == 0) return run_one(argv[2], argv[3]);
  if (argc == 2 || argc == 3)
    return run_all(std::filesystem::read_symlink("/proc/self/exe").c_str(), argv[1],
                   argc == 3 ? argv[2] : "");
  std::fprintf(stderr, "usage: fuzz_bombs IMPRINT [TEXT | --some]\n");
  return 2;
}
