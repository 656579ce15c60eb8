// The studio for networks of the library.

#include <cstdlib>
#include <utility>
#include <vector>

#include "imprint/studio_compute.h"
#include "tools/studio/group.h"
#include "tools/studio/shared_sums.h"

namespace imprint::studio {
namespace {

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : list + ",") {
    if (c != ',')
      word += c;
    else if (!word.empty())
      words.push_back(std::exchange(word, {}));
  }
  return words;
}

}  // namespace

std::uint32_t rank() { return Group::all().rank(); }
std::uint32_t ranks() { return Group::all().ranks(); }

std::string device() {
  const char* given = std::getenv("IMPRINT_STUDIO_DEVICES");
  const std::vector<std::string> devices = words_of(given ? given : "");
  return devices.empty() ? "cpu" : devices[Group::all().local_rank() % devices.size()];
}

std::function<void(std::span<float>)> all_reduce(bool compressed) {
  if (compressed) return [](std::span<float> numbers) { Group::all().add_compressed(numbers); };
  return [](std::span<float> numbers) { Group::all().add(numbers); };
}

std::shared_ptr<SharedSums> shared_sums() {
  static const std::shared_ptr<MappedSums> sums = MappedSums::create(Group::all());
  return sums;
}

double seconds_in_sums() { return Group::all().seconds_in_add(); }

ProgramPart mean_part(const nn::Parameters& variables) {
  ProgramPart part{{.name = "mean over processes"}};
  const Tensor share(1.0 / static_cast<double>(ranks()));
  for (const nn::Parameter& entry : variables) {
    if (entry.variable.dtype() != DType::float32) continue;  // counters, equal in all
    part.description.updates.push_back(Update::assign(entry.variable, entry.value() * share));
    part.summed.push_back(entry.variable);
  }
  return part;
}

Result<> broadcast(Session& session, const nn::Parameters& variables) {
  std::vector<Variable> list;
  for (const nn::Parameter& entry : variables) list.push_back(entry.variable);
  IMPRINT_ASSIGN(std::vector<HostTensor> values, session.read(list));
  for (std::size_t i = 0; i < list.size(); ++i) {
    Group::all().broadcast(std::as_writable_bytes(std::span(values[i].floats)));
    Group::all().broadcast(std::as_writable_bytes(std::span(values[i].ints)));
    IMPRINT_CHECK(session.write(list[i], values[i]));
  }
  return {};
}

void finish() { Group::all().finish(); }
void fail(const std::string& text) { Group::all().fail(text, kRefused); }

}  // namespace imprint::studio
