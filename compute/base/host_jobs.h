#pragma once

namespace imprint {

// The host's job system. submit must arrange exactly one call of run(data), on any thread, during submit or
// later. Imprint holds no lock while it calls submit.
struct HostJobs {
  void (*submit)(void* user, void (*run)(void* data), void* data) = nullptr;
  void* user = nullptr;
};

}  // namespace imprint
