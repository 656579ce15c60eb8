#include "plugin/agent/learn/sample_layout.h"

namespace imprint::agent {

SampleLayout SampleLayout::begin(const BrainSpec& spec) {
  SampleLayout layout;
  return layout.add(&SampleLayout::observation, spec.observation.width())
      .add(&SampleLayout::goal)
      .add(&SampleLayout::branches, static_cast<std::uint32_t>(spec.action.branch_sizes.size()))
      .add(&SampleLayout::continuous, spec.action.continuous_count);
}

SampleLayout& SampleLayout::add(std::uint32_t SampleLayout::*part, std::uint32_t columns) {
  this->*part = width;
  width += columns;
  return *this;
}

}  // namespace imprint::agent
