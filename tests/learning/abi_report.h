#pragma once
// Seeds that run side by side, their results as a file, and rows against bars.
//
// The file has a line for each check of each seed: row, seed, at (decisions, or minutes of a lesson), greedy
// (or a lesson's share of right answers), played (or ridge regression's share), bound (of a lesson), warnings
// (of the whole seed).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/learning/abi_rows.h"
#include "tests/learning/careless_person.h"

namespace imprint::trials {

struct CarelessCurve {
  std::vector<CarelessCheck> checks;
};

// By row and seed.
struct AbiResults {
  std::map<std::string, std::map<std::uint64_t, AbiCurve>> curves;
  std::map<std::string, std::map<std::uint64_t, CarelessCurve>> lessons;
};

struct AbiRun {
  std::uint64_t first_seed = 1, seeds = 10;
  std::uint32_t jobs = 1;
  std::string report;  // file to append to; empty: none
};

// Throws std::runtime_error with the first failure's text. A line on stderr for each seed that ends.
AbiResults run_rows(const std::vector<AbiRow>& rows, const std::vector<CarelessRow>& lessons,
                    const AbiRun& run);
// Adds a file's seeds. Throws std::runtime_error.
void read_report(const std::string& path, AbiResults& results);

struct AbiVerdict {
  std::string key, what, bar, found, seeds;
  bool met = false;
};
std::vector<AbiVerdict> judge(const std::vector<AbiRow>& rows, const std::vector<CarelessRow>& lessons,
                              const AbiResults& results);
void print_rows(const std::vector<AbiRow>& rows, const std::vector<CarelessRow>& lessons,
                const AbiResults& results, const std::vector<AbiVerdict>& verdicts, bool every_check);
// As tools/figures reads it. Throws std::runtime_error.
void write_table(const std::string& path, const std::vector<AbiVerdict>& verdicts);

}  // namespace imprint::trials
