// The learning table: does the pet learn fast enough from every teacher, and does it keep its skills? Prints
// measurements against bars. The exit status is 1 when a bar is missed, 2 after an error.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/learning/learning.h"

namespace {

bool write_json(const std::string& path, const std::vector<learning::Row>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const learning::Row& row : rows)
    json.push_back({{"experiment", row.experiment},
                    {"measured", row.measured},
                    {"bar", row.bar},
                    {"passed", row.passed}});
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  return static_cast<bool>(file);
}

// The table of samples/pet/README.md.
bool write_markdown(const std::string& path, const std::vector<learning::Row>& rows) {
  std::ofstream file(path);
  file << "| what the scripted player teaches | measured | bar |\n| --- | --: | --: |\n";
  for (const learning::Row& row : rows)
    file << "| " << row.experiment << " | " << row.measured << " | " << row.bar << " |\n";
  file.close();
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  learning::Plan plan;
  std::string json_file, markdown_file;
  std::uint64_t seeds = 0;
  CLI::App app{"Teaches the pet with scripted players and prints figures against bars."};
  app.add_flag("--fast", plan.fast, "two seeds and shorter lessons");
  app.add_option("--seeds", seeds, "number of seeds; default 10, with --fast 2")->check(CLI::Range(1, 1000));
  app.add_option("--first-seed", plan.first_seed, "the first seed; default 1")->check(CLI::Range(1, 1000000));
  app.add_option("--device", plan.device, "GPU by index or part of its name; cpu: the pets learn on the CPU");
  app.add_flag("--validation", plan.validation, "use the Vulkan validation layer; any message fails");
  app.add_option("--json", json_file, "write the table as JSON");
  app.add_option("--markdown", markdown_file, "write the table as Markdown");
  app.add_option(
      "experiments", plan.only,
      "off demo praise careless wrong retention save undo then hash replay kennel sofa lure learners "
      "switch; default: all");
  CLI11_PARSE(app, argc, argv);
  plan.seeds = seeds > 0 ? seeds : plan.fast ? 2 : 10;
  pet::Result<learning::Table> made = learning::Table::create(plan);
  if (!made) {
    std::fprintf(stderr, "learning: %s\n", made.error().message.c_str());
    return 2;
  }
  learning::Table& table = *made;
  const bool passed = table.run();
  for (const auto& [path, written] :
       {std::pair(json_file, json_file.empty() || write_json(json_file, table.rows())),
        std::pair(markdown_file, markdown_file.empty() || write_markdown(markdown_file, table.rows()))}) {
    if (written) continue;
    std::fprintf(stderr, "learning: cannot write %s\n", path.c_str());
    return 2;
  }
  return passed ? 0 : 1;
}
