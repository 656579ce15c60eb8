#include "compute/training/predict.h"

#include "compute/base/at.h"
#include "compute/base/text.h"

namespace imprint::training {

Result<std::vector<HostTensor>> predict(Session& session, Loader& data, const Forward& forward) {
  const std::vector<Tensor> inputs = batch_inputs(data);
  const std::int64_t size = data.options().batch;
  const std::vector<Tensor> outputs = forward(inputs);
  for (const Tensor& output : outputs) {
    if (!output.ok()) return output.error();
    if (output.rank() == 0 || output.extent(0) != size)
      return make_error(ErrorCode::shape_mismatch, text("predict: found a result ", output.shape().text(),
                                                        ", expected [", size, ", ...], a row per sample"));
  }
  IMPRINT_ASSIGN(
      Program program,
      Program::compile(session.runtime(), {.name = "prediction", .inputs = inputs, .outputs = outputs}));
  std::vector<HostTensor> all(outputs.size());
  std::int64_t samples = 0;
  data.start(0);
  for (Batch batch;;) {
    IMPRINT_ASSIGN(const bool has_batch, data.next(batch));
    if (!has_batch) break;
    IMPRINT_ASSIGN(const std::vector<HostTensor> found, session.run(program, batch.fields));
    samples += batch.count;
    for (std::size_t i = 0; i < found.size(); ++i) {
      // Samples that only fill the batch are its last ones.
      const auto count = static_cast<std::ptrdiff_t>(outputs[i].shape().element_count() / size * batch.count);
      const auto take = [&](auto& to, const auto& from) {
        if (!from.empty()) to.insert(to.end(), from.begin(), from.begin() + count);
      };
      take(all[i].floats, found[i].floats);
      take(all[i].ints, found[i].ints);
      take(all[i].int64s, found[i].int64s);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].dtype = outputs[i].dtype();
    all[i].shape = outputs[i].shape();
    all[i].shape[0] = samples;
  }
  return all;
}

}  // namespace imprint::training
