#include "compute/training/trainer_checks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <vector>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/tensor/node.h"
#include "compute/tensor/walk.h"
#include "compute/training/curves.h"

namespace imprint::training {
namespace {

namespace fs = std::filesystem;

using VariableSet = std::set<const tensor::VariableState*>;

VariableSet variables_of(const nn::Parameters& parameters) {
  VariableSet all;
  for (const nn::Parameter& each : parameters) all.insert(each.variable.state().get());
  return all;
}

// Float variables that a gradient of the loss may reach, in the order of the computation.
std::vector<const tensor::VariableState*> reached_variables(const Tensor& loss) {
  const auto passes = [](const tensor::Node& node) {
    return node.op != tensor::Op::stop_gradient && dtype_is_float(node.dtype);
  };
  std::vector<const tensor::VariableState*> reached;
  for (const tensor::NodeRef* node : tensor::nodes_in_order(std::span(&loss, 1), passes))
    if ((*node)->op == tensor::Op::variable && dtype_is_float((*node)->dtype))
      reached.push_back((*node)->variable.get());
  return reached;
}

std::string first_names(const nn::Parameters& parameters) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(parameters.size(), 3); ++i)
    names += text(i == 0 ? "'" : ", '", parameters[i].variable.name(), "'");
  return names + (parameters.size() > 3 ? ", ..." : "");
}

bool is_checkpoint(const std::string& file) {
  return (file.starts_with("step-") || file == "last.safetensors") && file.ends_with(".safetensors");
}

Error folder_error(const std::string& folder, const std::error_code& error) {
  return make_error(ErrorCode::io, text("trainer: folder '", folder, "': ", error.message()));
}

}  // namespace

Result<> check_training(const Tensor& loss, nn::Pass& pass, const nn::Parameters& state,
                        const nn::Optimiser& optimiser, const nn::Parameters& frozen) {
  const nn::Parameters& trained = optimiser.parameters();
  if (trained.empty())
    return make_error(ErrorCode::invalid_argument,
                      "trainer: found an optimiser without parameters, expected one or more. Does matching() "
                      "fit no name, or does a module lack parameters()?");
  const std::vector<const tensor::VariableState*> reached = reached_variables(loss);
  VariableSet known = variables_of(trained);
  if (std::ranges::none_of(reached, [&](const auto* variable) { return known.contains(variable); }))
    return make_error(ErrorCode::invalid_argument,
                      text("trainer: found a loss that depends on none of the optimiser's parameters (",
                           first_names(trained), "); it depends on ",
                           reached.empty() ? std::string("no variable") : text("'", reached[0]->name, "'"),
                           ". Give the optimiser the parameters of the network that the model computes."));
  known.merge(variables_of(state));
  known.merge(variables_of(frozen));
  for (const auto* variable : reached)
    if (!known.contains(variable))
      return make_error(ErrorCode::invalid_argument,
                        text("trainer: the loss reads '", variable->name,
                             "', found in neither the state nor the optimiser's parameters. Does a module "
                             "lack parameters() or buffers()? Add what no step changes to "
                             "TrainerOptions::frozen, or to the state."));
  for (const Update& update : pass.updates())
    if (update.target.ok() && !known.contains(update.target.state().get()))
      return make_error(
          ErrorCode::invalid_argument,
          text("trainer: a step changes '", update.target.name(),
               "', which the state lacks, so that checkpoints would lose it. Does a module lack "
               "buffers()? Give the trainer state_of(network)."));
  return {};
}

Result<> make_run_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return folder_error(folder, error);
  return {};
}

Result<> set_aside_earlier_run(const std::string& folder) {
  IMPRINT_ASSIGN(const std::vector<std::string> all, list_folder(folder));
  std::error_code error;
  std::vector<fs::path> found;
  for (const fs::path path : all)
    if (const std::string name = path.filename().string(); is_checkpoint(name) || is_curve_file(name))
      found.push_back(path);
  if (found.empty()) return {};
  int number = 1;
  while (fs::exists(fs::path(folder) / text("earlier-", number), error)) ++number;
  const fs::path to = fs::path(folder) / text("earlier-", number);
  fs::create_directory(to, error);
  for (const fs::path& file : found)
    if (!error) fs::rename(file, to / file.filename(), error);
  if (error) return folder_error(folder, error);
  return {};
}

Result<> check_optimiser_of(const safetensors::File& checkpoint, const nn::Parameters& saved) {
  constexpr std::string_view kModel = "model.", kOptimiser = "optimiser.";
  std::string lacks, has;
  std::set<std::string_view> expected;
  for (const nn::Parameter& each : saved) {
    const bool is_there = checkpoint.arrays.contains(each.name);
    if (!is_there && each.name.starts_with(kModel)) return {};  // another model: load_state says so
    if (!each.name.starts_with(kOptimiser)) continue;
    expected.insert(each.name);
    if (!is_there && lacks.empty()) lacks = each.name;
  }
  for (const auto& entry : checkpoint.arrays)
    if (entry.first.starts_with(kOptimiser) && !expected.contains(entry.first) && has.empty())
      has = entry.first;
  if (lacks.empty() && has.empty()) return {};
  const auto named = [](const std::string& name) { return name.empty() ? "no more" : "'" + name + "'"; };
  return make_error(ErrorCode::invalid_argument,
                    text("checkpoint: found that of another optimiser, or of other parameters: it has ",
                         named(has), ", expected ", named(lacks),
                         ". Make the same optimiser, or load the weights alone: load_state(session, "
                         "network.parameters(), file, \"model.\")."));
}

std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : text(loss); }

}  // namespace imprint::training
