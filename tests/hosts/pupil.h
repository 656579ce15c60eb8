#pragma once
// The pet of samples/pet and its scripted teacher, taught through the C ABI in the frames of any host. It
// knows no Vulkan: the host passes the declaration of its device and, for record, a command buffer per frame.

#include <imprint/imprint_tools.h>
#include <imprint/imprint_vulkan.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace imprint::hosts {

struct PupilOptions {
  bool submit = false;   // submits to the declared queue; else records into the host's command buffer
  bool learning = true;  // false: it only infers
  double seconds = 20;   // of lessons, simulated; 0 = endless
  std::uint64_t seed = 1;
};

struct Place {
  float x = 0, y = 0;
};

// Failures throw std::runtime_error with Imprint's message.
class Pupil {
 public:
  Pupil(const imp_vk_device_info& device, const PupilOptions& options);
  ~Pupil();
  Pupil(const Pupil&) = delete;
  Pupil& operator=(const Pupil&) = delete;

  // A host frame, counted from 1 without gaps. With record, the GPU has finished all up to safe_frame.
  void begin(std::uint64_t frame, std::uint64_t safe_frame);
  void send(VkCommandBuffer commands);  // ignored with submit
  void end();
  // The lessons and the examination after them are over.
  bool finished() const;
  // The GPU has finished every frame. Call only const functions afterwards.
  void close();

  Place place() const;    // of the pet in its yard, about -5 .. 5
  float success() const;  // share of the examination's 100 commands carried out without a mistake
  const std::vector<std::uint32_t>& decisions() const;  // of the examination, in order
  void set_learning(bool on);
  imp_context_stats context_stats() const;
  imp_brain_stats brain_stats() const;
  const std::vector<std::string>& warnings() const;  // logged by Imprint

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// Checks that the pet has learned and that its frames compiled, allocated and waited for nothing. Empty: all
// holds.
std::string faults(const Pupil& pupil);

}  // namespace imprint::hosts
