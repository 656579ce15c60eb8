// The learning table: does the pet learn, as fast as it should, from every kind of teacher, and does it keep
// what it learned? Prints figures against bars; the exit status is 1 when one is missed.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <fstream>

#include "tests/learning/learning.h"

int main(int argc, char** argv) {
  learning::Plan plan;
  std::string json_file;
  std::uint64_t seeds = 0;
  CLI::App app{"Teaches the pet with scripted players and prints figures against bars."};
  app.add_flag("--fast", plan.fast, "two seeds and shorter lessons");
  app.add_option("--seeds", seeds, "how many seeds; 10, with --fast 2")->check(CLI::Range(1, 1000));
  app.add_option("--first-seed", plan.first_seed, "the first of them; 1")->check(CLI::Range(1, 1000000));
  app.add_option("--device", plan.device,
                 "GPU by index or part of its name; cpu: the pets learn on the processor");
  app.add_flag("--validation", plan.validation, "with the Vulkan validation layer; any message fails");
  app.add_option("--json", json_file, "write the table");
  app.add_option("experiments", plan.only,
                 "off demo praise careless retention save undo then hash replay kennel sofa lure learners "
                 "switch; all when none is named");
  CLI11_PARSE(app, argc, argv);
  plan.seeds = seeds > 0 ? seeds : plan.fast ? 2 : 10;
  try {
    learning::Table table(plan);
    const bool passed = table.run();
    if (!json_file.empty()) {
      nlohmann::ordered_json json = nlohmann::ordered_json::array();
      for (const learning::Row& row : table.rows()) {
        json.push_back({{"experiment", row.experiment},
                        {"measured", row.measured},
                        {"bar", row.bar},
                        {"passed", row.passed}});
      }
      std::ofstream(json_file) << json.dump(2) << "\n";
    }
    return passed ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "learning: %s\n", error.what());
    return 2;
  }
}
