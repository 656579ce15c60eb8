#include "tools/imprint/saved_file.h"

#include <CLI/CLI.hpp>
#include <span>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/keep/schema.h"
#include "tools/imprint/brain_file.h"

namespace imprint::tools {
Result<SavedFile> open_saved(const std::string& path, const std::string& description) {
  SavedFile file;
  IMPRINT_ASSIGN(file.bytes, read_file(path));
  IMPRINT_ASSIGN(const agent::BrainDescription found, agent::describe_file(file.bytes));
  std::vector<BrainFile> brains;
  if (!description.empty()) {
    IMPRINT_ASSIGN(brains, load_brains(description));
  } else if (found.json.empty()) {
    return make_error(ErrorCode::unsupported,
                      text("'", path,
                           "': description: found none, because an older library wrote the file. "
                           "Describe the brain by --brain-file."));
  } else {
    IMPRINT_ASSIGN(brains, parse_brains(path, std::as_bytes(std::span(found.json))));
  }
  if (brains.size() != 1)
    return make_error(ErrorCode::invalid_argument, text("'", description.empty() ? path : description,
                                                        "': found ", brains.size(), " brains, expected one"));
  file.spec = brains[0].spec;
  file.spec.name = found.name;
  IMPRINT_CHECK(check_fits(file, path, file.spec.parameter_count()));
  return file;
}

Result<> check_fits(const SavedFile& file, const std::string& path, std::uint64_t numbers) {
  if (numbers <= file.bytes.size() / sizeof(float)) return {};
  return make_error(ErrorCode::corrupt_file,
                    text("'", path, "': found ", amount(file.bytes.size(), "byte"), ", expected ", numbers,
                         " numbers of ", agent::schema_text(file.spec)));
}

void add_description_option(CLI::App& command, std::string& description) {
  command.add_option("--brain-file", description, "the brain's fields, for files of older libraries")
      ->type_name("BRAIN.json");
}

}  // namespace imprint::tools
