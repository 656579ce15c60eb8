// A large network teaches a small one: the student learns the teacher's probabilities, not the labels.

#include "examples.h"

namespace examples {

using namespace imprint;

Result<Finding> distil(const Settings& settings) {
  IMPRINT_ASSIGN(const Digits digits, load_digits(settings));
  IMPRINT_ASSIGN(
      training::Loader training,
      training::Loader::create(digits.training, {.batch = 64, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(digits.validation, {.batch = 250}));

  const std::int64_t wide = settings.small ? 128 : 512;
  const nn::Sequential teacher = nn::mlp("teacher", {784, wide, wide, 10}, {.seed = settings.seed}),
                       student = nn::mlp("student", {784, 16, 10}, {.seed = settings.seed});
  const training::Model lesson = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = teacher(flatten(in[0], 1), pass);
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  // Hinton, Vinyals, Dean, Distilling the Knowledge in a Neural Network, 2015: both at a temperature.
  constexpr float kTemperature = 3;
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor known = teacher(flatten(in[0], 1)), y = student(flatten(in[0], 1), pass);
    const Tensor apart =
        sum(nn::kl_divergence(log_softmax(y / kTemperature), softmax(stop_gradient(known) / kTemperature),
                              false, nn::Reduction::none),
            {1});
    return training::Computed{kTemperature * kTemperature * apart,
                              {{"accuracy", training::accuracy(y, in[1])},
                               {"as the teacher", training::accuracy(y, argmax(known, -1))}}};
  };

  training::Trainer school(settings.session, lesson, teacher, nn::Adam(teacher.parameters()),
                           {.epochs = 4, .rate = nn::Schedule::one_cycle(4e-3, 4 * training.batches())});
  IMPRINT_CHECK(school.fit(training));
  IMPRINT_ASSIGN(const training::Scores taught, school.evaluate(validation));

  nn::Parameters state = student.parameters();
  state.add("teacher", teacher.parameters());
  const std::int64_t epochs = 8;
  IMPRINT_ASSIGN(const training::Outcome outcome,
                 train(settings, model, state, std::make_shared<nn::Adam>(student.parameters()),
                       {.epochs = epochs, .rate = nn::Schedule::one_cycle(0.01, epochs * training.batches())},
                       training, &validation));
  const std::string sizes = std::to_string(teacher.parameters().element_count()) + " numbers teach " +
                            std::to_string(student.parameters().element_count());
  return Finding{.measure = "share of new digits that the student has right",
                 .value = outcome.validation.metric("accuracy"),
                 .goal = settings.small ? 0.7 : 0.9,
                 .notes = {digits.note, sizes,
                           "The teacher has " + std::to_string(taught.metric("accuracy")) + " right."},
                 .interrupted = outcome.interrupted};
}

}  // namespace examples
