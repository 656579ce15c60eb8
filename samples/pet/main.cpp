#include <cstdio>

#include "samples/pet/headless.h"
#include "samples/pet/options.h"
#include "samples/pet/play.h"

int main(int argc, char** argv) {
  int status = 0;
  const std::optional<pet::Options> options = pet::parse_options(argc, argv, &status);
  if (!options) return status;
  const pet::Result<int> played = options->headless ? pet::run_headless(*options) : pet::run_window(*options);
  if (played) return *played;
  std::fprintf(stderr, "pet: %s\n", played.error().message.c_str());
  return 2;
}
