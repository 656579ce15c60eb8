// The library's face: names in `imprint` after including imprint/compute.h.

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "compute/base/text.h"
#include "tests/unit/house_rules.h"

namespace imprint::house {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFace = "compute/include/imprint/compute.h";

// Types, aliases and constants that may be in `imprint` itself. Everything else is in a room's namespace.
constexpr std::string_view kFaceNames[] = {
    // results and messages
    "Error", "ErrorCode", "LogLevel", "LogSink", "Result", "SharedBytes",
    // tensors
    "Axes", "ComplexTensor", "ConvolutionOptions", "DType", "Extent", "KeptBoxes", "LuFactors", "PadMode",
    "PerAxis", "PoolOptions", "QrFactors", "QuantisedWeights", "RegionOptions", "Resize", "ResizeOptions",
    "SampleOptions", "Scatter", "Selected", "Shape", "SignAndLog", "SuppressionOptions", "Tensor",
    "TensorBackward", "TensorFunction", "TransposedOptions", "UnfoldOptions", "Variable", "WithIndices",
    // operations with a loop of their own
    "Page", "PageArray", "PageOutput",
    // loops whose steps are recorded once
    "Branch", "Combination", "LoopBody", "LoopCondition", "ScanBody", "ScanOptions", "ScanStep", "Scanned",
    // programs
    "BufferRange", "Commands", "CpuThreads", "CpuWork", "DispatchFigures", "HostJobs", "HostTensor",
    "KernelFigures", "Precision", "Program", "ProgramDescription", "ProgramPart", "ProgramRounds",
    "ProgramSequence", "ProgramStats", "Runtime", "ScheduleFigures", "Session", "SharedSums", "StateCopy",
    "StateReadback", "Submit", "Update", "kMaxSequenceDispatches", "kMostCpuThreads",
    // tuning and baking
    "Baker", "Tuner", "TuningOptions", "TuningStats", "TuningStep", "VariantTable",
    // models
    "DimensionBound", "ImportOptions", "ImportedModel", "ImportedText", "ImportedValue", "OnnxExport",
    "OnnxValue", "OperatorUse", "Policy", "QuantiseOptions", "QuantisedModel", "QuantisedProducts",
    "QuantisedWeight", "PolicyDescription", "PolicyNames"};

// Headers whose functions belong to the face; functions of others are in a room's namespace.
constexpr std::string_view kFaceFunctions[] = {"compute/base/result.h",
                                               "compute/graph/gradients/autodiff.h",
                                               "compute/graph/gradients/checkpoint.h",
                                               "compute/model/onnx/export.h",
                                               "compute/model/onnx/import.h",
                                               "compute/model/policy.h",
                                               "compute/model/quantise.h",
                                               "compute/program/run.h",
                                               "compute/program/runtime.h",
                                               "compute/tensor/dtype.h",
                                               "compute/tensor/ops/associative_scan.h",
                                               "compute/tensor/composites/composites.h",
                                               "compute/tensor/ops/detection.h",
                                               "compute/tensor/extent.h",
                                               "compute/tensor/functions.h",
                                               "compute/tensor/composites/images.h",
                                               "compute/tensor/ops/linear_algebra.h",
                                               "compute/tensor/loop.h",
                                               "compute/tensor/pages/page.h",
                                               "compute/tensor/ops/quantised.h",
                                               "compute/tensor/shape.h",
                                               "compute/tensor/composites/signals.h",
                                               "compute/tensor/tensor.h",
                                               "compute/tuning/tuning_table.h"};

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The face and the headers of the tree that it includes, directly or indirectly.
std::set<std::string> face_headers(const fs::path& root) {
  static const std::regex include("^#include \"([^\"]+)\"");
  std::set<std::string> found;
  std::vector<std::string> pending{std::string(kFace)};
  while (!pending.empty()) {
    const std::string file = std::move(pending.back());
    pending.pop_back();
    if (!fs::exists(root / file) || !found.insert(file).second) continue;
    for (const std::string& line : lines_of(root / file))
      if (std::smatch match; std::regex_search(line, match, include)) pending.push_back(match[1]);
  }
  return found;
}

// The name that a line declares in a namespace. Sources are formatted, so such lines begin in the first
// column.
struct Declared {
  std::string name;
  bool is_function = false;
};

Declared declared_by(const std::string& line) {
  static const std::regex type(
      "^(?:struct|class|enum class|enum)\\s+(?:\\[\\[\\w+\\]\\] )?(\\w+)[^;]*(?:\\{|:|$)");
  static const std::regex alias("^using (\\w+) =");
  static const std::regex constant("^(?:inline )?constexpr [^(]*?(\\w+)(?:\\[\\])?(?: =|\\{|;)");
  static const std::regex function("^[A-Za-z].*?\\b(\\w+)\\(");
  std::smatch match;
  for (const std::regex* form : {&type, &alias, &constant})
    if (std::regex_search(line, match, *form)) return {match[1], false};
  if (line.find("operator") == line.npos && std::regex_search(line, match, function)) return {match[1], true};
  return {};
}

}  // namespace

std::vector<std::string> names_outside_the_face(const fs::path& root) {
  std::vector<std::string> faults;
  for (const std::string& file : face_headers(root)) {
    std::vector<std::string> within;  // namespaces that are open
    std::size_t number = 0;
    for (const std::string& line : lines_of(root / file)) {
      ++number;
      if (line.starts_with("namespace "))
        within.push_back(line.substr(10, line.find_first_of(" {", 10) - 10));
      if (line.starts_with("}  // namespace") && !within.empty()) within.pop_back();
      if (within != std::vector<std::string>{"imprint"} || line.starts_with("namespace ")) continue;
      const Declared declared = declared_by(line);
      const bool belongs = declared.is_function
                               ? std::ranges::find(kFaceFunctions, file) != std::end(kFaceFunctions)
                               : std::ranges::find(kFaceNames, declared.name) != std::end(kFaceNames);
      if (!declared.name.empty() && !belongs)
        faults.push_back(text(file, ":", number, ": found ", declared.name,
                              " in imprint, expected a room's namespace or a name of the face"));
    }
  }
  return faults;
}

std::vector<std::string> undocumented_ops(const fs::path& root) {
  static const std::regex row(R"(^  X\((?:(\w+), elementwise|\w+, reduce, 1, reduce, \d+, \w+, (\w+)),)"),
      word(R"(\w+)");
  constexpr std::string_view rows = "compute/tensor/op_rows.h", readers = "compute/tensor/tensor.h";
  std::set<std::string> named;
  for (const std::string& line : lines_of(root / readers))
    if (line.starts_with("//"))
      for (std::sregex_iterator found(line.begin(), line.end(), word), end; found != end; ++found)
        named.insert(found->str());
  std::vector<std::string> faults;
  std::size_t number = 0;
  for (const std::string& line : lines_of(root / rows)) {
    ++number;
    std::smatch match;
    if (!std::regex_search(line, match, row)) continue;
    const std::string name = match[1].matched ? match[1] : match[2];
    if (!named.contains(name))
      faults.push_back(text(rows, ":", number, ": found ", name, " in no comment of ", readers,
                            ", expected its name there"));
  }
  return faults;
}

}  // namespace imprint::house
