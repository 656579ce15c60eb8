#include "compute/program/bake.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>

#include "compute/base/hash.h"
#include "compute/base/text.h"
#include "compute/graph/passes/set_apart.h"
#include "compute/program/device_profile.h"
#include "compute/program/loop_parts.h"
#include "compute/program/program_impl.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "compute/vk/pipelines/kernel_archive.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;
using namespace tensor;

namespace {

// The block of each part of a program's memory. Order of parts: the constants (0), the groups, the other
// variables, then each variable that lies alone.
struct MemoryParts {
  std::vector<std::int32_t> of_variable;  // by position in FusionRequest::variables
  std::vector<std::int32_t> movable;      // existing parts that may share a block
  std::int32_t count = 0;
};

MemoryParts parts_of(const ProgramGraph& source, Baker::Groups groups, std::span<const Variable> apart) {
  MemoryParts parts;
  std::int32_t next = static_cast<std::int32_t>(groups.size()) + 2;
  for (const std::shared_ptr<VariableState>& variable : source.request.variables) {
    const auto has = [&](const std::vector<Variable>& group) {
      return std::ranges::any_of(group, [&](const Variable& one) { return one.state() == variable; });
    };
    const auto group = static_cast<std::int32_t>(std::ranges::find_if(groups, has) - groups.begin());
    const bool alone = variable->external || std::ranges::any_of(apart, [&](const Variable& one) {
                         return one.state() == variable;
                       });
    parts.of_variable.push_back(alone ? next++ : group + 1);
    if (!alone && std::ranges::find(parts.movable, group + 1) == parts.movable.end())
      parts.movable.push_back(group + 1);
  }
  parts.movable.push_back(0);
  parts.count = next;
  return parts;
}

// Calls use(block of each movable part) for every way to share blocks: all partitions of the parts, as
// restricted growth strings.
Result<> each_partition(std::size_t count, std::vector<std::int32_t>& block,
                        const std::function<Result<>(const std::vector<std::int32_t>&)>& use) {
  if (block.size() == count) return use(block);
  const std::int32_t fresh = block.empty() ? 0 : *std::ranges::max_element(block) + 1;
  for (std::int32_t choice = 0; choice <= fresh; ++choice) {
    block.push_back(choice);
    IMPRINT_CHECK(each_partition(count, block, use));
    block.pop_back();
  }
  return {};
}

// Like Program::Impl::build, with given places instead of real ones.
class Writer {
 public:
  Writer(const ProgramGraph& source, const vk::CapabilityProfile& profile, const VariantTable* variants,
         const DispatchLimit& limit)
      : source_(source), profile_(profile), variants_(variants), limit_(limit) {}

  Result<std::vector<vk::KernelSource>> kernels(
      const std::function<std::int32_t(const Schedule&, const Place&)>& buffer_of) {
    std::unordered_set<const Node*> apart;
    std::optional<Scheduled> split;  // with operations apart
    for (int splits = 0;; ++splits) {
      std::vector<std::int32_t> too_wide;
      std::optional<Scheduled>& made = apart.empty() ? fused_ : split;
      auto fused = kernels(made, source_.fuse, apart, buffer_of, &too_wide);
      if (fused || fused.error().code != ErrorCode::unsupported || !source_.fuse) return fused;
      if (splits < kMostSplits && made && set_apart(made->graph, made->schedule, too_wide, apart) > 0) {
        split.reset();
        continue;
      }
      auto plain = kernels(plain_, false, {}, buffer_of, nullptr);
      return plain ? std::move(plain) : std::move(fused);
    }
  }

 private:
  struct Scheduled {
    Graph graph;
    Schedule schedule;
  };

  Result<std::vector<vk::KernelSource>> kernels(
      std::optional<Scheduled>& made, bool fuse, const std::unordered_set<const Node*>& apart,
      const std::function<std::int32_t(const Schedule&, const Place&)>& buffer_of,
      std::vector<std::int32_t>* too_wide) {
    if (!made) {
      FusionOptions options = fusion_options(source_, profile_);
      options.fuse = fuse;
      options.variants = fuse ? variants_ : nullptr;
      if (!apart.empty()) options.apart = &apart;
      Scheduled fresh{source_.graph, {}};
      FusionRequest request = source_.request;
      IMPRINT_ASSIGN(fresh.schedule, graph::fuse(fresh.graph, request, options));
      if (fresh.schedule.tasks.size() > limit_.most)
        return make_error(ErrorCode::unsupported,
                          text("program '", source_.name, "': found ", fresh.schedule.tasks.size(),
                               " dispatches, expected at most ", limit_.most, ". ", limit_.remedy));
      fresh.schedule.extents = source_.extents();
      made = std::move(fresh);
    }
    const auto buffer = [&](const Place& place) { return buffer_of(made->schedule, place); };
    IMPRINT_ASSIGN(
        const std::vector<DispatchSource> dispatches,
        build_dispatches(made->graph, made->schedule, dispatch_limits(profile_), buffer, too_wide));
    return kernel_sources(source_.name, dispatches);
  }

  const ProgramGraph& source_;
  const vk::CapabilityProfile& profile_;
  const VariantTable* const variants_;
  const DispatchLimit& limit_;
  std::optional<Scheduled> fused_, plain_;
};

// For every way to share memory. variants: null for the cost model's.
Result<> each_kernel(const ProgramGraph& source, const MemoryParts& parts,
                     const vk::CapabilityProfile& profile, const VariantTable* variants,
                     const DispatchLimit& limit, const std::function<void(vk::KernelSource&)>& use) {
  Writer writer(source, profile, variants, limit);
  std::vector<std::int32_t> block;
  return each_partition(
      parts.movable.size(), block, [&](const std::vector<std::int32_t>& shared) -> Result<> {
        const auto block_of = [&](std::int32_t part) {
          const auto found = std::ranges::find(parts.movable, part);
          return found == parts.movable.end()
                     ? parts.count + part
                     : shared[static_cast<std::size_t>(found - parts.movable.begin())];
        };
        // The arena's buffer is 0 in every program.
        auto kernels = writer.kernels([&](const Schedule& schedule, const Place& place) {
          if (place.kind == PlaceKind::constant) return 1 + block_of(0);
          if (place.kind != PlaceKind::variable) return 0;
          const auto& variable = schedule.variables[static_cast<std::size_t>(place.index)];
          const auto position =
              std::ranges::find(source.request.variables, variable) - source.request.variables.begin();
          return 1 + block_of(parts.of_variable[static_cast<std::size_t>(position)]);
        });
        if (!kernels)
          return make_error(kernels.error().code,
                            text("profile '", profile.name, "': ", kernels.error().message));
        for (vk::KernelSource& kernel : *kernels) use(kernel);
        return {};
      });
}

}  // namespace

struct Baker::Kernels {
  struct Source {
    std::string name, glsl;
  };
  // A profile without features that a game may leave off. It counts while it has the same kernels.
  struct Reduced {
    vk::CapabilityProfile profile;
    bool is_equal = true;
  };
  std::map<Hash128, Source> by_key;           // by source_key
  std::vector<std::vector<Reduced>> reduced;  // per profile, the one without most features first
};

Baker::Baker(std::vector<vk::CapabilityProfile> profiles, std::vector<VariantTable> tables)
    : profiles_(std::move(profiles)), tables_(std::move(tables)), kernels_(std::make_unique<Kernels>()) {
  for (vk::CapabilityProfile& profile : profiles_) {
    profile = profile.as_compiled_here();
    const auto all = [](const vk::ProfileField& field) {
      return vk::CapabilityProfile::depends_on_game(field);
    };
    const auto all_but_storage = [&](const vk::ProfileField& field) {
      return all(field) && field.flag != &vk::CapabilityProfile::storage_16bit;
    };
    std::vector<Kernels::Reduced>& reduced = kernels_->reduced.emplace_back();
    if (const auto least = profile.without(all); least.unused_fields != 0) reduced.push_back({least});
    if (const auto less = profile.without(all_but_storage); profile.storage_16bit && less.unused_fields != 0)
      reduced.push_back({less});
  }
}

Baker::Baker(Baker&&) noexcept = default;
Baker& Baker::operator=(Baker&&) noexcept = default;
Baker::~Baker() = default;

void Baker::limit_dispatches(std::size_t most, std::string remedy) { limit_ = {most, std::move(remedy)}; }

std::size_t Baker::kernel_count() const { return kernels_->by_key.size(); }

Result<> Baker::add(const ProgramDescription& program, Groups groups, std::span<const Variable> apart) {
  if (has_loops(program)) {
    IMPRINT_ASSIGN(const ProgramSequence parts, parts_of_loops(program));
    return add(parts, groups, apart);
  }
  IMPRINT_ASSIGN(ProgramGraph source, build_program_graph(program));
  return add_graph(std::move(source), groups, apart);
}

Result<> Baker::add(const ProgramSequence& given, Groups groups, std::span<const Variable> apart) {
  IMPRINT_ASSIGN(const ProgramSequence sequence, without_loops(given));
  for (std::size_t i = 0; i < sequence.parts.size(); ++i) {
    IMPRINT_ASSIGN(ProgramGraph source, build_part_graph(sequence, i));
    if (Result<> added = add_graph(std::move(source), groups, apart); !added)
      return in_sequence(sequence, i, added.error());
  }
  return {};
}

Result<> Baker::add_graph(ProgramGraph source, Groups groups, std::span<const Variable> apart) {
  if (groups.size() > kMaxGroups)
    return make_error(ErrorCode::invalid_argument,
                      text("bake '", source.name, "': groups: found ", groups.size(), ", expected at most ",
                           kMaxGroups, ". Every way to share memory is baked."));
  const MemoryParts parts = parts_of(source, groups, apart);
  const auto each = [&](const vk::CapabilityProfile& profile,
                        const std::function<void(vk::KernelSource&)>& use) -> Result<> {
    IMPRINT_CHECK(each_kernel(source, parts, profile, nullptr, limit_, use));
    for (const VariantTable& table : tables_)
      IMPRINT_CHECK(each_kernel(source, parts, profile, &table, limit_, use));
    return {};
  };
  for (std::size_t i = 0; i < profiles_.size(); ++i) {
    std::vector<Hash128> keys;
    IMPRINT_CHECK(each(profiles_[i], [&](vk::KernelSource& kernel) {
      keys.push_back(vk::source_key(kernel.glsl));
      kernels_->by_key.try_emplace(keys.back(), Kernels::Source{kernel.name, kernel.glsl});
    }));
    for (Kernels::Reduced& reduced : kernels_->reduced[i]) {
      std::vector<Hash128> others;
      const auto keep = [&](vk::KernelSource& kernel) { others.push_back(vk::source_key(kernel.glsl)); };
      reduced.is_equal = reduced.is_equal && each(reduced.profile, keep).ok() && others == keys;
    }
  }
  return {};
}

// Each without the features that none of its kernels depends on.
std::vector<vk::CapabilityProfile> Baker::archived_profiles() const {
  std::vector<vk::CapabilityProfile> profiles = profiles_;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto& reduced = kernels_->reduced[i];
    const auto equal = std::ranges::find_if(reduced, &Kernels::Reduced::is_equal);
    if (equal != reduced.end()) profiles[i] = equal->profile;
  }
  return profiles;
}

Result<std::vector<std::byte>> Baker::compile(const std::function<void(std::size_t done)>& progress) const {
  const vk::GlslCompiler compiler;
  std::vector<vk::ArchivedKernel> kernels;
  std::vector<const Kernels::Source*> sources;
  for (const auto& [key, source] : kernels_->by_key) {
    kernels.push_back({key, source.name, {}});
    sources.push_back(&source);
  }

  std::mutex mutex;
  std::condition_variable finished;
  std::size_t done = 0;
  std::optional<Error> error;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < kernels.size(); i = next.fetch_add(1)) {
      auto spirv = compiler.compile(sources[i]->name, sources[i]->glsl);
      const std::lock_guard lock(mutex);
      if (spirv)
        kernels[i].spirv = std::move(*spirv);
      else if (!error)
        error = spirv.error();
      ++done;
      finished.notify_one();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0;
       i < std::min<std::size_t>(kernels.size(), std::max(1u, std::thread::hardware_concurrency())); ++i)
    threads.emplace_back(work);
  for (std::size_t told = 0; told < kernels.size();) {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return done > told; });
    told = done;
    lock.unlock();
    if (progress) progress(told);
  }
  threads.clear();
  if (error) return *error;
  return vk::write_kernel_archive(archived_profiles(), vk::GlslCompiler::identity(), std::move(kernels));
}

}  // namespace imprint
