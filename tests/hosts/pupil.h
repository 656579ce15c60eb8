#pragma once
// The pet of samples/pet and its scripted teacher, in the frames of whatever host: what every host here
// teaches through the C ABI. It knows no Vulkan; a host gives it the declaration of its device and, with
// record, a command buffer each frame.

#include <imprint/imprint_tools.h>
#include <imprint/imprint_vulkan.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace imprint::hosts {

struct PupilOptions {
  bool submit = false;   // on the declared queue; else into the host's command buffer
  bool learning = true;  // false: it only infers
  double seconds = 20;   // of lessons, simulated; 0 = without end
  std::uint64_t seed = 1;
};

struct Place {
  float x = 0, y = 0;
};

// Failures throw std::runtime_error with Imprint's own words.
class Pupil {
 public:
  Pupil(const imp_vk_device_info& device, const PupilOptions& options);
  ~Pupil();
  Pupil(const Pupil&) = delete;
  Pupil& operator=(const Pupil&) = delete;

  // A frame of the host, counted from 1 without a gap; with record, all up to safe_frame are done on the GPU.
  void begin(std::uint64_t frame, std::uint64_t safe_frame);
  void send(VkCommandBuffer commands);  // ignored with submit
  void end();
  // The lessons are over, and the examination after them.
  bool finished() const;
  // The GPU is done with every frame: nothing may be called afterwards but what asks.
  void close();

  Place place() const;    // of the pet in its yard, within about -5 .. 5
  float success() const;  // share of the examination's 100 commands carried out without a mistake
  const std::vector<std::uint32_t>& decisions() const;  // of the examination, in order
  void set_learning(bool on);
  imp_context_stats context_stats() const;
  imp_brain_stats brain_stats() const;
  const std::vector<std::string>& warnings() const;  // what Imprint logged

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// What must hold in every host: it has learned, and its frames compiled, allocated and waited for nothing.
// Empty, or what does not.
std::string faults(const Pupil& pupil);

}  // namespace imprint::hosts
