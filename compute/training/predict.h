#pragma once
// Outputs of a network for all samples of a data set.

#include <functional>
#include <span>
#include <vector>

#include "compute/program/run.h"
#include "compute/training/loader.h"

namespace imprint::training {

// fields: [batch, ...], as those of the data set; results: [batch, ...] each, as many as wanted.
using Forward = std::function<std::vector<Tensor>(std::span<const Tensor> fields)>;

// Each result for all samples, [samples, ...], in the loader's order: that of the data set unless it
// shuffles. LastBatch::drop leaves out the samples that it leaves out. Networks called without a pass
// evaluate. Narrow results are float32 or int32. Errors: those of the results, of Program::compile and of the
// data; shape_mismatch for a result without the batch's axis.
Result<std::vector<HostTensor>> predict(Session& session, Loader& data, const Forward& forward);

}  // namespace imprint::training
