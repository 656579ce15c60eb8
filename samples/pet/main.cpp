#include <cstdio>
#include <exception>

#include "samples/pet/headless.h"
#include "samples/pet/options.h"
#include "samples/pet/play.h"

int main(int argc, char** argv) {
  int status = 0;
  const std::optional<pet::Options> options = pet::parse_options(argc, argv, &status);
  if (!options) return status;
  try {
    return options->headless ? pet::run_headless(*options) : pet::run_window(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pet: %s\n", error.what());
    return 2;
  }
}
