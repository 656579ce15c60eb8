#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/learning/careless_person.h"

namespace imprint::trials {
namespace {

struct CarelessRow {
  const char* key;
  double wrong;
  bool demonstrates;
  std::vector<double> bars;  // of the learner's mean at the checks
};

bool print_row(const CarelessRow& row, std::uint64_t first_seed, std::uint64_t seeds) {
  std::printf("%s: %.0f %% of the words are wrong%s\n", row.key, 100 * row.wrong,
              row.demonstrates ? ", each answer was shown once" : "");
  std::vector<CarelessCheck> sums;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    CarelessPerson person;
    person.seed = seed;
    person.wrong = row.wrong;
    person.demonstrates = row.demonstrates;
    const std::vector<CarelessCheck> found = teach_carelessly(person);
    std::printf("  seed %2llu:", static_cast<unsigned long long>(seed));
    for (const CarelessCheck& check : found)
      std::printf(
          "  %2.0f min: %3.0f %% right, ridge %3.0f %%, known from %u words %3.0f %%, reliability %.2f;",
          check.minutes, 100 * check.learner, 100 * check.ridge, check.words, 100 * check.bayes,
          check.reliability);
    std::printf("\n");
    std::fflush(stdout);
    sums.resize(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      sums[i].minutes = found[i].minutes;
      sums[i].learner += found[i].learner / static_cast<double>(seeds);
      sums[i].ridge += found[i].ridge / static_cast<double>(seeds);
      sums[i].bayes += found[i].bayes / static_cast<double>(seeds);
    }
  }
  bool passed = true;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool met = sums[i].learner >= row.bars[i] && sums[i].learner > sums[i].ridge;
    std::printf(
        "  after %2.0f min: %.1f %% right (bar %.0f %%, and above ridge's %.1f %%; bound %.1f %%)  %s\n",
        sums[i].minutes, 100 * sums[i].learner, 100 * row.bars[i], 100 * sums[i].ridge, 100 * sums[i].bayes,
        met ? "met" : "MISSED");
    passed = passed && met;
  }
  return passed;
}

}  // namespace

bool print_careless_rows(const std::vector<std::string>& only, std::uint64_t first_seed,
                         std::uint64_t seeds) {
  const CarelessRow rows[] = {{"careless-person", 0.2, false, {0.4, 0.6}},
                              {"right-person", 0, false, {0.6, 0.85}},
                              {"careless-teacher", 0.2, true, {0, 0.75}}};
  bool passed = true;
  for (const CarelessRow& row : rows)
    if (only.empty() || std::ranges::find(only, row.key) != only.end())
      passed = print_row(row, first_seed, seeds) && passed;
  return passed;
}

}  // namespace imprint::trials
