#include "compute/training/loader.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "compute/base/text.h"

namespace imprint::training {

struct Loader::Impl {
  DatasetRef dataset;
  LoaderOptions options;
  std::int64_t batches = 0;

  std::vector<std::int64_t> order;  // of the epoch; set while no thread runs
  // That of the epoch after it, if it was begun: shuffling a large data set takes milliseconds.
  std::future<std::vector<std::int64_t>> next_order;
  std::int64_t order_epoch = -1, next_epoch = -1;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex while threads run:
  std::map<std::int64_t, Result<Batch>> ready;  // by number
  std::int64_t next_read = 0, next_given = 0;
  bool stops = false;
  std::vector<std::thread> threads;

  ~Impl() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    ready.clear();
    stops = false;
  }

  Batch numbers(std::int64_t number) const {
    Batch batch;
    batch.weights =
        HostTensor::from(std::vector<float>(static_cast<std::size_t>(options.batch), 1.0f), {options.batch});
    const std::int64_t whole = number * options.batch * options.parts,
                       first = whole + options.part * options.batch,
                       left = static_cast<std::int64_t>(order.size()) - first,
                       count = std::clamp<std::int64_t>(left, 0, options.batch);
    batch.count = count;
    for (std::int64_t row = 0; row < options.batch; ++row) {
      const auto at = static_cast<std::size_t>(count > 0 ? first + row % count : whole);
      batch.samples.push_back(order[at]);
      if (row >= count) batch.weights.floats[static_cast<std::size_t>(row)] = 0;
    }
    return batch;
  }

  Result<Batch> read(std::int64_t number) const {
    Batch batch = numbers(number);
    for (const Field& field : dataset->fields()) {
      Shape shape{options.batch};
      for (const std::int64_t extent : field.shape.extents()) shape.append(extent);
      HostTensor values{field.dtype, shape, {}, {}};
      const auto count = static_cast<std::size_t>(shape.element_count());
      if (dtype_is_float(field.dtype))
        values.floats.resize(count);
      else
        values.ints.resize(count);
      batch.fields.push_back(std::move(values));
    }
    for (std::int64_t row = 0; row < options.batch; ++row)
      IMPRINT_CHECK(dataset->read(batch.samples[static_cast<std::size_t>(row)], batch.fields, row));
    return batch;
  }

  void take_order(std::int64_t epoch) {
    if (std::exchange(order_epoch, epoch) == epoch) return;
    const auto shuffle = [size = dataset->size(), seed = options.seed](std::int64_t of) {
      return shuffled(size, seed, static_cast<std::uint32_t>(of));
    };
    order = next_order.valid() && next_epoch == epoch ? next_order.get() : shuffle(epoch);
    constexpr std::int64_t kLarge = 10'000;  // samples, of which the order costs more than a thread
    if (dataset->size() < kLarge) return;
    next_epoch = epoch + 1;
    next_order = std::async(std::launch::async, shuffle, next_epoch);
  }

  void read_ahead() {
    while (true) {
      std::int64_t number = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stops || next_read < next_given + options.read_ahead; });
        if (stops || next_read >= batches) return;
        number = next_read++;
      }
      Result<Batch> made = read(number);
      {
        const std::lock_guard lock(mutex);
        if (!made.ok()) next_read = batches;  // nothing follows a failure
        ready.emplace(number, std::move(made));
      }
      changed.notify_all();
    }
  }
};

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

Result<Loader> Loader::create(DatasetRef dataset, const LoaderOptions& options) {
  const std::int64_t size = dataset ? dataset->size() : 0;
  const bool drops = options.last == LastBatch::drop;
  if (options.parts < 1 || options.part < 0 || options.part >= options.parts)
    return make_error(ErrorCode::invalid_argument, text("loader: found part ", options.part, " of ",
                                                        options.parts, ", expected less than parts"));
  const std::int64_t whole = options.batch * options.parts;
  if (size < 1 || options.batch < 1 || options.read_ahead < 0 || options.threads < 1 ||
      (drops && size < whole))
    return make_error(ErrorCode::invalid_argument,
                      text("loader: found ", size, " samples and batch ", options.batch, ", read ahead ",
                           options.read_ahead, ", threads ", options.threads, ", expected 1 or more of all",
                           drops ? ", and a whole batch" : ""));
  auto impl = std::make_unique<Impl>();
  impl->dataset = std::move(dataset);
  impl->options = options;
  impl->batches = drops ? size / whole : (size + whole - 1) / whole;
  Loader loader(std::move(impl));
  loader.start(0);
  return loader;
}

const Dataset& Loader::dataset() const { return *impl_->dataset; }
DatasetRef Loader::shared_dataset() const { return impl_->dataset; }
const LoaderOptions& Loader::options() const { return impl_->options; }
std::int64_t Loader::batches() const { return impl_->batches; }

void Loader::start(std::int64_t epoch, std::int64_t first_batch) {
  impl_->stop();
  const std::int64_t size = impl_->dataset->size();
  if (impl_->options.shuffle) {
    impl_->take_order(epoch);
  } else if (impl_->order.empty()) {
    impl_->order.resize(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) impl_->order[static_cast<std::size_t>(i)] = i;
  }
  impl_->next_read = impl_->next_given = first_batch;
}

Result<bool> Loader::next(Batch& batch) {
  Impl& impl = *impl_;
  if (impl.next_given >= impl.batches) return false;
  if (impl.options.read_ahead == 0) {
    IMPRINT_ASSIGN(batch, impl.read(impl.next_given++));
    return true;
  }
  while (impl.threads.size() < static_cast<std::size_t>(impl.options.threads))
    impl.threads.emplace_back([&impl] { impl.read_ahead(); });
  std::optional<Result<Batch>> made;
  {
    std::unique_lock lock(impl.mutex);
    // A failure is the last batch that was read; after it, nothing comes.
    impl.changed.wait(lock, [&] { return impl.ready.contains(impl.next_given); });
    made = std::move(impl.ready.extract(impl.next_given).mapped());
    impl.next_given = made->ok() ? impl.next_given + 1 : impl.batches;
  }
  impl.changed.notify_all();
  if (!made->ok()) return made->error();
  batch = std::move(*made).value();
  return true;
}

bool Loader::next_numbers(Batch& batch) {
  if (impl_->next_given >= impl_->batches) return false;
  batch = impl_->numbers(impl_->next_given++);
  return true;
}

std::vector<Tensor> batch_inputs(const Loader& loader) {
  std::vector<Tensor> inputs;
  for (const Field& field : loader.dataset().fields()) {
    Shape shape{loader.options().batch};
    for (const std::int64_t extent : field.shape.extents()) shape.append(extent);
    inputs.push_back(input(field.name, shape, field.dtype));
  }
  return inputs;
}

}  // namespace imprint::training
